package etcd

import (
	"context"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/worker"
)

// Records is the storage of a pool of worker IDs. Use NewRecords, and
// worker.NewPool on it. All methods are safe for concurrent use.
type Records struct{ *conn }

var _ worker.Records = (*Records)(nil)

// NewRecords returns a Records. It does not connect. The error is leaf.ErrBadRequest
// and names the field.
func NewRecords(cfg Config) (*Records, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &Records{newConn(cfg)}, nil
}

func (r *Records) namespaceKey() string { return r.cfg.Prefix + "/namespace" }
func (r *Records) claimsKey() string    { return r.cfg.Prefix + "/claims/" }
func (r *Records) boundsKey() string    { return r.cfg.Prefix + "/bounds/" }
func (r *Records) peersKey() string     { return r.cfg.Prefix + "/peers/" }

// Info implements worker.Records.
func (r *Records) Info() worker.Info {
	return worker.Info{Name: "etcd", Kind: worker.Leased, Shared: true}
}

// Namespace implements worker.Records.
func (r *Records) Namespace(ctx context.Context, want *worker.StoredNamespace) (*worker.StoredNamespace, error) {
	key := r.namespaceKey()
	absent := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)}
	var create []clientv3.Op
	if want != nil {
		create = []clientv3.Op{clientv3.OpPut(key, encode(namespaceValue{
			Name: want.Name, Fingerprint: want.Fingerprint, IssueFrom: want.IssueFrom,
		}))}
	}
	response, err := r.commit(ctx, absent, create, []clientv3.Op{clientv3.OpGet(key)})
	if err != nil {
		return nil, fmt.Errorf("read etcd key %q: %w", key, err)
	}
	if response.Succeeded {
		return want, nil
	}
	var value namespaceValue
	if err := decode(key, response.Responses[0].GetResponseRange().Kvs[0].Value, &value); err != nil {
		return nil, err
	}
	return &worker.StoredNamespace{
		Namespace: worker.Namespace{Name: value.Name, Fingerprint: value.Fingerprint}, IssueFrom: value.IssueFrom,
	}, nil
}

// Reserved implements worker.Records: no other program has numbers in etcd.
func (*Records) Reserved(context.Context) ([]worker.Adoptable, error) { return nil, nil }

// List implements worker.Records. Claims and bounds are read at one moment.
func (r *Records) List(ctx context.Context) ([]worker.Record, error) {
	response, err := r.commit(ctx, nil, []clientv3.Op{
		clientv3.OpGet(r.claimsKey(), clientv3.WithPrefix()),
		clientv3.OpGet(r.boundsKey(), clientv3.WithPrefix()),
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("list worker IDs below etcd key %q: %w", r.cfg.Prefix, err)
	}
	l := listing{records: map[int64]worker.Record{}, versions: map[int64]version{}, damage: map[int64]string{}}
	for _, kv := range response.Responses[0].GetResponseRange().Kvs {
		l.claim(string(kv.Key), r.claimsKey(), kv.Value, kv.ModRevision)
	}
	for _, kv := range response.Responses[1].GetResponseRange().Kvs {
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
	response, err := r.commit(ctx, conditions, []clientv3.Op{
		clientv3.OpPut(claim, text),
		clientv3.OpPut(bound, strconv.FormatInt(record.Bound, 10)),
	}, nil)
	if err != nil {
		return "", fmt.Errorf("write etcd keys of worker ID %d: %w", record.Number, err)
	}
	if !response.Succeeded {
		return "", fmt.Errorf("%w: the etcd keys of worker ID %d are not what they were", worker.ErrLost, record.Number)
	}
	now := response.Header.Revision
	return version{claim: now, bound: now, text: text}.String(), nil
}
