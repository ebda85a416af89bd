package etcd

import (
	"context"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/segment"
)

// beside is what lies beside a store in the same etcd, or alone.
type beside struct {
	*conn

	of *Store // whose cluster it belongs to; nil: it is alone

	own      atomic.Pointer[string] // its own ID, where it is alone; nil: not known
	readable atomic.Bool            // the user may read that ID
}

// BelongTo says that this belongs to the cluster of a store in the same etcd. Call it before any other method. What is read
// and made is compared with the store's key owner in the same transaction: beside the store of another cluster the call
// returns a *segment.ClusterError (rule V).
func (b *beside) BelongTo(s *Store) { b.of = s }

// idKey has the ID of what is alone.
func (b *beside) idKey() string { return b.cfg.Prefix + "/id" }

// compared returns the key that says whose keys these are, and its text as this node knows it; "": none is compared.
func (b *beside) compared() (key, text string) {
	switch own := b.own.Load(); {
	case b.of != nil:
		return b.of.ownerKey(), b.of.owner.seen()
	case own != nil && b.readable.Load():
		return b.idKey(), *own
	}
	return "", ""
}

// look reads at one moment, and returns the answers. Unlike Store.look it does not compare the tag rule.
func (b *beside) look(ctx context.Context, reads ...clientv3.Op) ([]reply, error) {
	key, _ := b.compared()
	if key != "" {
		reads = append([]clientv3.Op{get(key)}, reads...)
	}
	response, err := b.commit(ctx, nil, reads, nil)
	switch {
	case err != nil:
		return nil, err
	case key == "":
		return response.Responses, nil
	}
	return response.Responses[1:], b.checkCluster(textOf(response.Responses[0]))
}

// write carries out writes if all conditions hold. If not, nothing is written.
func (b *beside) write(ctx context.Context, conditions []clientv3.Cmp, writes ...clientv3.Op) error {
	key, text := b.compared()
	if key == "" {
		_, err := b.commit(ctx, conditions, writes, nil)
		return err
	}
	for {
		response, err := b.commit(ctx, append([]clientv3.Cmp{is(key, text)}, conditions...), writes, []clientv3.Op{get(key)})
		if err != nil || response.Succeeded {
			return err
		}
		now := textOf(response.Responses[0])
		if err := b.checkCluster(now); err != nil || now == text { // another condition has failed
			return err
		}
		text = now
	}
}

// checkCluster returns a *segment.ClusterError if the text of the key that compared names is that of another cluster, or of
// another registry.
func (b *beside) checkCluster(text string) error {
	if b.of == nil {
		if own := *b.own.Load(); text != "" && text != own { // without an ID it is no other registry
			return &segment.ClusterError{Own: own, Found: text}
		}
		return nil
	}
	v, err := parseOwner(b.of.ownerKey(), text)
	if err != nil {
		return err
	}
	return b.of.owner.check(v)
}
