package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf/worker"
)

// namespace is a stored namespace.
type namespace struct {
	worker.StoredNamespace

	guard   string // path of a node that exists as long as this namespace does
	forever int64
	version int32
}

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
		StoredNamespace: worker.StoredNamespace{Namespace: worker.Namespace{Name: r.Name, Fingerprint: r.Fingerprint}, IssueFrom: r.IssueFrom},
		guard:           p + "/" + r.Incarnation, forever: r.Forever, version: n.stat.Version,
	}, nil
}

// openNamespace returns the namespace at p. If there is none it makes folders, and
// the namespace from want.
func (c *conn) openNamespace(ctx context.Context, p string, want worker.StoredNamespace, folders ...string) (*namespace, error) {
	for {
		stored, err := c.readNamespace(ctx, p)
		if stored != nil || err != nil {
			return stored, err
		}
		for _, folder := range folders {
			if err := c.ensure(ctx, folder); err != nil {
				return nil, err
			}
		}
		if err := c.writeNamespace(ctx, p, nil, want, 0); err != nil && !errors.Is(err, errMoved) {
			return nil, err
		}
	}
}

// writeNamespace makes the namespace at p from want, in place of old.
func (c *conn) writeNamespace(ctx context.Context, p string, old *namespace, want worker.StoredNamespace, forever int64) error {
	incarnation := rand.Text()
	data := encode(namespaceRecord{
		Format: format, Name: want.Name, Fingerprint: want.Fingerprint, IssueFrom: want.IssueFrom,
		Incarnation: incarnation, Forever: forever,
	})
	ops := []any{create(p, data)}
	if old != nil {
		ops = []any{set(p, data, old.version), remove(old.guard, 0)}
	}
	if _, err := c.change(ctx, p, append(ops, create(p+"/"+incarnation, nil))...); err != nil {
		return fmt.Errorf("create the namespace: %w", err)
	}
	return nil
}
