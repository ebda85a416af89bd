package etcd

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/worker"
)

// Records is the storage of a pool of worker IDs. Use NewRecords, and
// worker.NewPool on it. All methods are safe for concurrent use.
//
// Of records that belong to a store, the namespace and the records are compared with its cluster (BelongTo). Each Put names
// the incarnation of a namespace that was read so.
type Records struct {
	beside
}

var _ worker.Records = (*Records)(nil)

// NewRecords returns a Records. It does not connect. The error is leaf.ErrBadRequest
// and names the field.
func NewRecords(cfg Config) (*Records, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &Records{beside{conn: newConn(cfg)}}, nil
}

func (r *Records) namespaceKey() string   { return r.cfg.Prefix + "/namespace" }
func (r *Records) incarnationKey() string { return r.cfg.Prefix + "/incarnation" }
func (r *Records) givenKey() string       { return r.cfg.Prefix + "/given" }
func (r *Records) claimsKey() string      { return r.cfg.Prefix + "/claims/" }
func (r *Records) boundsKey() string      { return r.cfg.Prefix + "/bounds/" }
func (r *Records) peersKey() string       { return r.cfg.Prefix + "/peers/" }

// Slots returns the records that say which node serves which tags in strict order, below the prefix of the
// store, with connections of their own. They have the form of those of worker IDs.
func (s *Store) Slots() (*Records, error) {
	cfg := s.cfg
	cfg.Prefix, cfg.Password = s.key("slots"), s.currentPassword()
	r, err := NewRecords(cfg)
	if err != nil {
		return nil, err
	}
	r.BelongTo(s)
	return r, nil
}

// Info implements worker.Records.
func (r *Records) Info() worker.Info {
	return worker.Info{Name: "etcd", Kind: worker.Leased, Shared: true, Reset: "etcdctl del " + shellWord(r.namespaceKey())}
}

// Namespace implements worker.Records.
func (r *Records) Namespace(ctx context.Context, want *worker.StoredNamespace) (*worker.StoredNamespace, error) {
	if stored, err := r.readNamespace(ctx); stored != nil || err != nil || want == nil {
		return stored.value(), err
	}
	incarnation := rand.Text()
	if err := r.write(ctx, []clientv3.Cmp{isAbsent(r.namespaceKey())},
		clientv3.OpPut(r.namespaceKey(), encode(namespaceValue{
			Name: want.Name, Fingerprint: want.Fingerprint, IssueFrom: want.IssueFrom, Incarnation: incarnation, Forgotten: -want.Given,
		})),
		clientv3.OpDelete(r.givenKey()),
		clientv3.OpPut(r.incarnationKey(), incarnation),
	); err != nil {
		return nil, fmt.Errorf("write etcd key %q: %w", r.namespaceKey(), err)
	}
	stored, err := r.readNamespace(ctx)
	return stored.value(), err
}

// namespace is a stored namespace with the revisions of its keys.
type namespace struct {
	worker.StoredNamespace

	revision, counted int64 // ModRevision of namespace; version of given
}

// value is the stored namespace, nil if there is none.
func (n *namespace) value() *worker.StoredNamespace {
	if n == nil {
		return nil
	}
	return &n.StoredNamespace
}

// readNamespace returns what is stored, nil if nothing is.
func (r *Records) readNamespace(ctx context.Context) (*namespace, error) {
	read, err := r.look(ctx, get(r.namespaceKey()), get(r.givenKey()), get(r.incarnationKey()))
	if err != nil {
		return nil, fmt.Errorf("read etcd key %q: %w", r.namespaceKey(), err)
	}
	kvs := found(read[0])
	if len(kvs) == 0 {
		return nil, nil
	}
	var value namespaceValue
	if err := decode(r.namespaceKey(), kvs[0].Value, &value); err != nil {
		return nil, err
	}
	// Every claim and renewal compares the key incarnation, and would lose for ever. Without one
	// none would compare anything, and no number would be counted.
	if kvs := found(read[2]); value.Incarnation == "" || len(kvs) == 0 || string(kvs[0].Value) != value.Incarnation {
		return nil, fmt.Errorf("the etcd key %q is missing, or is not that of %q; delete the key %q, and all numbers wait as after a wipe",
			r.incarnationKey(), r.namespaceKey(), r.namespaceKey())
	}
	ns := &namespace{revision: kvs[0].ModRevision, StoredNamespace: worker.StoredNamespace{
		Namespace: worker.Namespace{Name: value.Name, Fingerprint: value.Fingerprint}, IssueFrom: value.IssueFrom, Incarnation: value.Incarnation,
	}}
	for _, kv := range found(read[1]) {
		ns.counted = kv.Version
	}
	ns.Given = ns.counted - value.Forgotten
	return ns, nil
}

// Amend implements worker.Records.
func (r *Records) Amend(ctx context.Context, old, next worker.StoredNamespace) error {
	stored, err := r.readNamespace(ctx)
	if err != nil {
		return err
	}
	changed := fmt.Errorf("%w: the etcd key %q has changed", worker.ErrLost, r.namespaceKey())
	if stored == nil || stored.StoredNamespace != old {
		return changed
	}
	response, err := r.commit(ctx, []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(r.namespaceKey()), "=", stored.revision),
		clientv3.Compare(clientv3.Version(r.givenKey()), "=", stored.counted),
	}, []clientv3.Op{clientv3.OpPut(r.namespaceKey(), encode(namespaceValue{
		Name: old.Name, Fingerprint: old.Fingerprint, IssueFrom: next.IssueFrom, Incarnation: old.Incarnation,
		Forgotten: stored.counted - next.Given,
	}))}, nil)
	if err != nil {
		return fmt.Errorf("write etcd key %q: %w", r.namespaceKey(), err)
	}
	if !response.Succeeded {
		return changed
	}
	return nil
}

// Reserved implements worker.Records: no other program has numbers in etcd.
func (*Records) Reserved(context.Context) ([]worker.Adoptable, error) { return nil, nil }

// List implements worker.Records. Claims and bounds are read at one moment.
func (r *Records) List(ctx context.Context) ([]worker.Record, error) {
	read, err := r.look(ctx, getAll(r.claimsKey()), getAll(r.boundsKey()))
	if err != nil {
		return nil, fmt.Errorf("list claims below etcd key %q: %w", r.cfg.Prefix, err)
	}
	l := listing{records: map[int64]worker.Record{}, versions: map[int64]version{}, damage: map[int64]string{}}
	for _, kv := range found(read[0]) {
		l.claim(string(kv.Key), r.claimsKey(), kv.Value, kv.ModRevision)
	}
	for _, kv := range found(read[1]) {
		l.bound(string(kv.Key), r.boundsKey(), kv.Value, kv.ModRevision)
	}
	return l.all(r.claimsKey(), r.boundsKey()), nil
}

// Put implements worker.Records.
func (r *Records) Put(ctx context.Context, record worker.Record) (string, error) {
	was, err := parseVersion(record.Version)
	if err != nil {
		return "", err
	}
	number := strconv.FormatInt(record.Number, 10)
	claim, bound := r.claimsKey()+number, r.boundsKey()+number
	conditions := []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(claim), "=", was.claim),
		clientv3.Compare(clientv3.ModRevision(bound), "=", was.bound),
	}
	if was.claim != 0 {
		conditions = append(conditions, clientv3.Compare(clientv3.Value(claim), "=", was.text))
	}
	text := encode(claimValue{
		Address: record.Address, Nonce: record.Nonce, Floor: record.Floor, Released: record.Released,
	})
	writes := []clientv3.Op{
		clientv3.OpPut(claim, text),
		clientv3.OpPut(bound, strconv.FormatInt(record.Bound, 10)),
	}
	if record.Incarnation != "" {
		conditions = append(conditions,
			clientv3.Compare(clientv3.CreateRevision(r.namespaceKey()), ">", 0),
			clientv3.Compare(clientv3.Value(r.incarnationKey()), "=", record.Incarnation))
		if record.Version == "" {
			writes = append(writes, clientv3.OpPut(r.givenKey(), ""))
		}
	}
	response, err := r.commit(ctx, conditions, writes, nil)
	if err != nil {
		return "", fmt.Errorf("write etcd keys %q and %q: %w", claim, bound, err)
	}
	if !response.Succeeded {
		return "", fmt.Errorf("%w: the etcd keys %q and %q are not what they were", worker.ErrLost, claim, bound)
	}
	now := response.Header.Revision
	return version{claim: now, bound: now, text: text}.String(), nil
}
