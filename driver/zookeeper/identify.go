package zookeeper

import (
	"context"
	"errors"
	"path"

	"github.com/go-zookeeper/zk"
)

// identify returns the ID at p. Where there is none it records id first, unless id is "".
func (c *conn) identify(ctx context.Context, p, id string) (string, error) {
	found, err := c.identifyAt(ctx, p, id)
	if errors.Is(err, zk.ErrNoAuth) { // granted before there was this node, for each of the others
		return "", nil
	}
	return found, err
}

func (c *conn) identifyAt(ctx context.Context, p, id string) (string, error) {
	for {
		n, err := c.get(ctx, p)
		switch {
		case err != nil:
			return "", err
		case n != nil:
			return string(n.data), nil
		case id == "":
			return "", nil
		}
		if err := c.ensure(ctx, parent(p)); err != nil {
			return "", err
		}
		if _, err := c.change(ctx, p, create(p, []byte(id))); err != nil && !errors.Is(err, errMoved) {
			return "", err
		}
	}
}

// Identify returns the ID of the registry below the name, which is that of both kinds, and which a namespace does not end.
// Where it has none it records id first, unless id is "". A client without the right to do so finds none. Every error may be
// retried.
func (o *Original) Identify(ctx context.Context, id string) (string, error) {
	return o.identify(ctx, o.root+"/leaf_id", id)
}

// Identify is Original.Identify.
func (r *Recycle) Identify(ctx context.Context, id string) (string, error) {
	return r.identify(ctx, path.Dir(r.root)+"/leaf_id", id)
}
