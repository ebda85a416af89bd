package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// Recycle is the storage of a pool of worker IDs: give it to worker.NewPool. Use
// NewRecycle. All methods are safe for concurrent use.
//
// A number has two nodes, claims/<n> with a child that is named by the nonce, and
// bounds/<n>, which is T. All are persistent. Deleting claims/<n> with its child gives
// the number back, and leaves T.
type Recycle struct {
	*conn

	root string // /snowflake/<name>/leaf_pool, below the chroot
}

var _ worker.Records = (*Recycle)(nil)

// NewRecycle returns a storage that connects with its first call. An error is
// leaf.ErrBadRequest.
func NewRecycle(cfg Config) (*Recycle, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Recycle{conn: newConn(cfg), root: cfg.Chroot + "/snowflake/" + cfg.Name + "/leaf_pool"}, nil
}

// Info implements worker.Records.
func (r *Recycle) Info() worker.Info {
	return worker.Info{Name: "zookeeper-recycle", Kind: worker.Leased, Shared: true, Reset: deleteAll(r.namespace())}
}

func (r *Recycle) namespace() string { return r.root + "/namespace" }

func (r *Recycle) claims() string { return r.root + "/claims" }
func (r *Recycle) bounds() string { return r.root + "/bounds" }

// Namespace implements worker.Records.
func (r *Recycle) Namespace(ctx context.Context, want *worker.StoredNamespace) (*worker.StoredNamespace, error) {
	for {
		stored, err := r.readNamespace(ctx, r.namespace()) // before the look at the other kind
		if err != nil || stored == nil && want == nil {
			return nil, err
		}
		var issueFrom int64
		if want != nil {
			issueFrom, err = r.supersede(ctx, r.fixed())
		}
		switch {
		case err != nil:
			return nil, err
		case stored == nil:
			err = r.found(ctx, *want)
		case stored.IssueFrom < issueFrom:
			if _, err = r.guarded(ctx, stored); err == nil {
				err = r.postpone(ctx, r.namespace(), stored, issueFrom)
			}
		default:
			if err = r.given(ctx, stored); err == nil {
				return &stored.StoredNamespace, nil
			}
		}
		if err != nil && !errors.Is(err, errMoved) {
			return nil, err
		}
	}
}

// found makes the namespace from want.
func (r *Recycle) found(ctx context.Context, want worker.StoredNamespace) error {
	if err := r.ensureAll(ctx, r.claims(), r.bounds(), r.presences()); err != nil {
		return err
	}
	return r.writeNamespace(ctx, r.namespace(), nil, want, 0)
}

// Amend implements worker.Records.
func (r *Recycle) Amend(ctx context.Context, old, next worker.StoredNamespace) error {
	return r.amendNamespace(ctx, r.namespace(), old, next)
}

// Reserved implements worker.Records. No other program uses the path.
func (r *Recycle) Reserved(context.Context) ([]worker.Adoptable, error) { return nil, nil }

// poolVersion is the content of a Record's Version: the data versions of the nodes that
// hold the claim and T (-1: there is no such node), and the nonce. The nonce tells a node
// from its successor at the same path, because ZooKeeper counts versions from 0 again when
// a node was deleted and created.
type poolVersion struct {
	claim, bound int32
	nonce        string
}

const absent = -1

func (v poolVersion) String() string { return fmt.Sprintf("%d.%d.%s", v.claim, v.bound, v.nonce) }

// parsePoolVersion reads what String wrote; "" is that of a number without nodes.
func parsePoolVersion(text string) (v poolVersion, err error) {
	if text == "" {
		return poolVersion{claim: absent, bound: absent}, nil
	}
	parts := strings.SplitN(text, ".", 3)
	if len(parts) != 3 {
		return v, leaf.BadField("version", text, "is not of this registry")
	}
	v.nonce = parts[2]
	for i, to := range []*int32{&v.claim, &v.bound} {
		n, err := strconv.ParseInt(parts[i], 10, 32)
		if err != nil || n < absent {
			return v, leaf.BadField("version", text, "is not of this registry")
		}
		*to = int32(n)
	}
	return v, nil
}

// List implements worker.Records. It takes a few round trips, not one for each
// number.
func (r *Recycle) List(ctx context.Context) ([]worker.Record, error) {
	if err := r.sync(ctx, "/"); err != nil {
		return nil, err
	}
	// T after the claims: a T that is newer than its claim makes a Put fail, and the version differs from that of the next reading.
	claims, err := r.list(ctx, r.claims())
	if err != nil {
		return nil, err
	}
	bounds, err := r.list(ctx, r.bounds())
	if err != nil {
		return nil, err
	}
	type entry struct {
		worker.Record

		version poolVersion
	}
	entries := map[int64]*entry{}
	damage := map[int64]string{} // what cannot be read keeps no other number from being claimed
	at := func(folder, name string) (e *entry, p string) {
		p = folder + "/" + name
		number, err := strconv.ParseInt(name, 10, 64)
		if err != nil || number < 0 {
			number = -1
		}
		if strconv.FormatInt(number, 10) != name || number < 0 {
			damage[number] = fmt.Sprintf("node %s is not named by a number", p)
			return nil, p
		}
		if entries[number] == nil {
			entries[number] = &entry{worker.Record{Number: number}, poolVersion{claim: absent, bound: absent}}
		}
		return entries[number], p
	}
	for _, c := range claims {
		e, p := at(r.claims(), c.name)
		if e == nil {
			continue
		}
		var found claimRecord
		if err := decode(p, c.data, &found); err != nil {
			damage[e.Number] = err.Error()
		}
		e.Address, e.Nonce, e.Floor, e.Released = found.Address, found.Nonce, found.Floor, found.Released
		e.version.claim, e.version.nonce = c.stat.Version, found.Nonce
		if c.stat.NumChildren == 0 {
			e.Nonce = "" // its guard was deleted, so its owner can never write again
		}
	}
	for _, b := range bounds {
		e, p := at(r.bounds(), b.name)
		if e == nil {
			continue
		}
		if e.Bound, err = parseBound(p, b.data); err != nil {
			damage[e.Number] = err.Error()
		}
		e.version.bound = b.stat.Version
	}
	records := make([]worker.Record, 0, len(entries))
	for n, e := range entries {
		if e.version.bound == absent && damage[n] == "" {
			// Without T nothing tells what its owner has issued.
			damage[n] = fmt.Sprintf("node %s/%d exists and %s/%d does not", r.claims(), n, r.bounds(), n)
		}
		if damage[n] == "" {
			e.Version = e.version.String()
			records = append(records, e.Record)
		}
	}
	for n, why := range damage {
		records = append(records, worker.Record{Number: n, Damage: why})
	}
	return records, nil
}

// Put implements worker.Records.
func (r *Recycle) Put(ctx context.Context, record worker.Record) (string, error) {
	old, err := parsePoolVersion(record.Version)
	if err != nil {
		return "", err
	}
	number := strconv.FormatInt(record.Number, 10)
	p := r.claims() + "/" + number
	claim := encode(claimRecord{
		Format: format, Address: record.Address, Nonce: record.Nonce, Floor: record.Floor,
		Released: record.Released,
	})
	claimOp, claimVersion := write(p, claim, old.claim)
	boundOp, boundVersion := write(r.bounds()+"/"+number, encode(boundRecord{Format: format, Bound: new(record.Bound)}), old.bound)
	ops := []any{claimOp, boundOp}
	if record.Incarnation != "" {
		guard := exists(r.namespace() + "/" + record.Incarnation)
		if record.Version == "" {
			guard = count(r.namespace() + "/" + record.Incarnation)
		}
		ops = append(ops, guard)
	}
	if record.Nonce == old.nonce && record.Nonce != "" && old.claim != absent {
		ops = append(ops, exists(p+"/"+escape(record.Nonce)))
	} else if ops, err = r.newOwner(ctx, ops, p, old, record); err != nil {
		return "", err
	}
	switch _, err := r.change(ctx, p, ops...); {
	case errors.Is(err, errMoved):
		if errors.Is(err, zk.ErrNoNode) && min(old.claim, old.bound) == absent { // perhaps a folder was deleted beside the namespace
			if err := r.ensureAll(ctx, r.claims(), r.bounds()); err != nil {
				return "", err
			}
		}
		return "", fmt.Errorf("%w: worker ID %d: %w", worker.ErrLost, record.Number, err)
	case err != nil:
		return "", err
	}
	return poolVersion{claimVersion, boundVersion, record.Nonce}.String(), nil
}

// newOwner adds the operations by which the nonce of record becomes the owner of the
// claim at p, whatever the guard there is. It must be that of the nonce that the
// caller has read, or none if that read no nonce: the versions may have come back with another one.
func (r *Recycle) newOwner(ctx context.Context, ops []any, p string, old poolVersion, record worker.Record) ([]any, error) {
	names, err := r.children(ctx, p)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 && !slices.Contains(names, escape(old.nonce)) || len(names) == 0 && old.nonce != "" {
		if err := r.edited(ctx, p, old); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		ops = append(ops, remove(p+"/"+name, anyVersion))
	}
	if record.Nonce == "" {
		return ops, nil
	}
	return append(ops, create(p+"/"+escape(record.Nonce), nil)), nil
}

// edited returns nil if the claim at p has the nonce that was read although its guard
// is another: the nonce was written by hand.
func (r *Recycle) edited(ctx context.Context, p string, old poolVersion) error {
	n, err := r.get(ctx, p)
	if err != nil {
		return err
	}
	var found claimRecord
	if n == nil || n.stat.Version != old.claim || decode(p, n.data, &found) != nil || found.Nonce != old.nonce {
		return fmt.Errorf("%w: %s has another owner than the one that was read", worker.ErrLost, p)
	}
	return nil
}

// write returns the operation that expects version, and the version that results.
func write(p string, data []byte, version int32) (op any, next int32) {
	if version == absent {
		return create(p, data), 0
	}
	return set(p, data, version), version + 1
}

func (r *Recycle) presences() string { return r.root + "/peers" }

// presence is the path of a process. Several may have one address.
func (r *Recycle) presence(p worker.Peer) string {
	return r.presences() + "/" + escape(p.Address) + "-" + escape(p.Nonce)
}

// Announce implements worker.Records.
func (r *Recycle) Announce(ctx context.Context, p worker.Peer) error {
	return r.announce(ctx, r.presence(p), p)
}

// Withdraw implements worker.Records.
func (r *Recycle) Withdraw(ctx context.Context, p worker.Peer) error {
	return r.withdraw(ctx, r.presence(p), p)
}

// Peers implements worker.Records.
func (r *Recycle) Peers(ctx context.Context) ([]worker.Peer, error) {
	return r.peers(ctx, r.presences())
}

// Close implements worker.Records. It may be repeated.
func (r *Recycle) Close() error {
	r.close()
	return nil
}
