package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// beside is what lies beside a store in the same etcd, or alone.
type beside struct {
	*conn

	of *Store // whose cluster it belongs to; nil: it is alone
}

// BelongTo says that this belongs to the cluster of a store in the same etcd. Call it before any other method. What is read
// and made is compared with the store's key owner in the same transaction: beside the store of another cluster the call
// returns a *segment.ClusterError (rule V).
func (b *beside) BelongTo(s *Store) { b.of = s }

// look reads at one moment, and returns the answers. Unlike Store.look it does not compare the tag rule.
func (b *beside) look(ctx context.Context, reads ...clientv3.Op) ([]reply, error) {
	if b.of != nil {
		reads = append([]clientv3.Op{get(b.of.ownerKey())}, reads...)
	}
	response, err := b.commit(ctx, nil, reads, nil)
	switch {
	case err != nil:
		return nil, err
	case b.of == nil:
		return response.Responses, nil
	}
	return response.Responses[1:], b.checkCluster(textOf(response.Responses[0]))
}

// write carries out writes if all conditions hold. If not, nothing is written.
func (b *beside) write(ctx context.Context, conditions []clientv3.Cmp, writes ...clientv3.Op) error {
	if b.of == nil {
		_, err := b.commit(ctx, conditions, writes, nil)
		return err
	}
	key, text := b.of.ownerKey(), b.of.owner.seen()
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

// checkCluster returns a *segment.ClusterError if the text of the key owner names another cluster than the store's.
func (b *beside) checkCluster(text string) error {
	v, err := parseOwner(b.of.ownerKey(), text)
	if err != nil {
		return err
	}
	return b.of.owner.check(v)
}
