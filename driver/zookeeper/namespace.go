package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"

	"github.com/leaf-idgen/leaf/worker"
)

// namespace is a stored namespace.
type namespace struct {
	worker.StoredNamespace

	guard   string // path of a node that exists as long as this namespace does
	forever int64
	version int32

	forgotten int64
	counted   int32 // version of guard, read by given only
}

// noForever is the forever of a namespace that a claim has created and none has read since. No
// node is born with it.
const noForever = 0

// readNamespace returns the namespace at p, nil if there is none.
func (c *conn) readNamespace(ctx context.Context, p string) (*namespace, error) {
	n, err := c.get(ctx, p)
	if n == nil || err != nil {
		return nil, err
	}
	var r namespaceRecord
	if err := decode(p, n.data, &r); err != nil {
		return nil, err
	}
	if r.Incarnation == "" || r.IssueFrom < 0 || r.IssueFrom > maxMoment {
		return nil, unreadable(p, n.data, errors.New("no incarnation, or no moment"))
	}
	return &namespace{
		StoredNamespace: worker.StoredNamespace{Namespace: worker.Namespace{Name: r.Name, Fingerprint: r.Fingerprint}, IssueFrom: r.IssueFrom, Incarnation: r.Incarnation},
		forgotten:       r.Forgotten, guard: p + "/" + r.Incarnation, forever: r.Forever, version: n.stat.Version,
	}, nil
}

// hadNamespace reports whether the claimer's last claim was made in a namespace.
func hadNamespace(claim *worker.Request) bool {
	return claim.Previous != nil && claim.Previous.Incarnation != ""
}

// lost returns from when on fresh numbers may be used in ns, as far as the claimer knows
// that the namespace of its last claim is gone: other owners of that time may not know it
// yet (rule U). 0: it knows of no loss, or ns was told of it.
func (ns *namespace) lost(claim *worker.Request) int64 {
	if p := claim.Previous; hadNamespace(claim) && p.Incarnation != ns.Incarnation && ns.IssueFrom < p.Quiet {
		return max(claim.QuietNow(), p.Quiet)
	}
	return 0
}

// postpone makes all claims from now on start at issueFrom or later. Those that were made stay.
func (c *conn) postpone(ctx context.Context, p string, ns *namespace, issueFrom int64) error {
	data := encode(namespaceRecord{
		Format: format, Name: ns.Name, Fingerprint: ns.Fingerprint, IssueFrom: issueFrom, Incarnation: ns.Incarnation,
		Forgotten: ns.forgotten, Forever: ns.forever,
	})
	_, err := c.change(ctx, p, set(p, data, ns.version), exists(ns.guard))
	return err
}

// guarded returns the guard node of ns, which every write expects. The error is errMoved if
// the namespace is gone as well, or is another one. If only the guard is gone, the error
// says what to delete.
func (c *conn) guarded(ctx context.Context, ns *namespace) (*node, error) {
	guard, err := c.get(ctx, ns.guard)
	if guard != nil || err != nil {
		return guard, err
	}
	p := path.Dir(ns.guard)
	now, err := c.readNamespace(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case now == nil || now.Incarnation != ns.Incarnation:
		return nil, fmt.Errorf("%w: the namespace at %s is being replaced", errMoved, p)
	}
	return nil, fmt.Errorf("node %s was deleted, without which no number can be claimed or renewed; delete node %s, and all numbers wait as after a wipe", ns.guard, p)
}

// given completes a namespace by its Given. Namespace and guard are read one after the
// other: the guard may count an Amend that ns does not have, and Given would then belong to
// another IssueFrom. The error is errMoved if the namespace has changed since it was read.
func (c *conn) given(ctx context.Context, ns *namespace) error {
	guard, err := c.guarded(ctx, ns)
	if err != nil {
		return err
	}
	p := path.Dir(ns.guard)
	switch now, err := c.readNamespace(ctx, p); {
	case err != nil:
		return err
	case now == nil || now.Incarnation != ns.Incarnation || now.version != ns.version:
		return fmt.Errorf("%w: the namespace at %s was changed meanwhile", errMoved, p)
	}
	ns.counted = guard.stat.Version
	ns.Given = int64(guard.stat.Version) - ns.forgotten
	return nil
}

// amendNamespace implements worker.Records.Amend for the namespace at p.
func (c *conn) amendNamespace(ctx context.Context, p string, old, next worker.StoredNamespace) error {
	stored, err := c.readNamespace(ctx, p)
	if stored != nil && err == nil {
		err = c.given(ctx, stored)
	}
	if err != nil && !errors.Is(err, errMoved) {
		return err
	}
	if err != nil || stored == nil || stored.StoredNamespace != old {
		return fmt.Errorf("%w: the namespace at %s has changed since it was read", worker.ErrLost, p)
	}
	data := encode(namespaceRecord{
		Format: format, Name: old.Name, Fingerprint: old.Fingerprint, IssueFrom: next.IssueFrom, Incarnation: old.Incarnation,
		Forgotten: int64(stored.counted) + 1 - next.Given, Forever: stored.forever,
	})
	_, err = c.change(ctx, p, set(p, data, stored.version), set(stored.guard, nil, stored.counted))
	if errors.Is(err, errMoved) {
		err = fmt.Errorf("%w: %w", worker.ErrLost, err)
	}
	return err
}

// writeNamespace makes the namespace at p from want, in place of old.
func (c *conn) writeNamespace(ctx context.Context, p string, old *namespace, want worker.StoredNamespace, forever int64) error {
	incarnation := rand.Text()
	data := encode(namespaceRecord{
		Format: format, Name: want.Name, Fingerprint: want.Fingerprint, IssueFrom: want.IssueFrom,
		Incarnation: incarnation, Forgotten: -want.Given, Forever: forever,
	})
	ops := []any{create(p, data)}
	if old != nil {
		ops = []any{set(p, data, old.version), remove(old.guard, anyVersion)}
	}
	if _, err := c.change(ctx, p, append(ops, create(p+"/"+incarnation, nil))...); err != nil {
		return fmt.Errorf("create the namespace: %w", err)
	}
	return nil
}
