package fence

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
)

// Number tells the cluster fence that holds all of this node's ranges apart from others: 0 without a cluster fence, while some of
// the node's ranges are not in it, and where the node takes ranges without it in an outage.
func (f *Fence) Number() int64 {
	c := f.cluster
	if c == nil || f.cfg.Degrade {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.losses > 0 || !c.known.Merged {
		return 0
	}
	return NumberOf(c.known.Space)
}

// NumberOf returns a number from 1 that tells incarnations of cluster fences apart, 0
// for none.
func NumberOf(space string) int64 {
	if space == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(space))
	return int64(binary.BigEndian.Uint64(sum[:])>>1) | 1
}

// HasCluster reports whether there is a cluster fence.
func (f *Fence) HasCluster() bool { return f.cluster != nil }

// ClusterEntry returns the tag's entry in the cluster fence as of now, and the incarnation.
// Error: leaf.ErrNotReady while the cluster fence is not open.
func (f *Fence) ClusterEntry(ctx context.Context, tag string) (e Entry, ok bool, space string, err error) {
	c, l := f.cluster, Load{tag: tag}
	if err := c.enter(ctx, &l); err != nil {
		return e, false, "", err
	}
	defer l.End()
	if l.outage != nil {
		return e, false, "", c.notReady()
	}
	e, ok, err = c.read(ctx, l.space, tag)
	return e, ok, l.space, err
}

// RaiseCluster raises the tag's entry in the cluster fence to end if it lies below, or makes
// it. It is for an incarnation that ClusterEntry returned.
func (f *Fence) RaiseCluster(ctx context.Context, space, tag string, end int64) error {
	return f.cluster.raiseTo(ctx, space, tag, end)
}

// SeenInCluster returns where the tag's entry in the cluster fence ended when this process
// saw it last, 0 if never.
func (f *Fence) SeenInCluster(tag string) int64 {
	if f.cluster == nil {
		return 0
	}
	return f.cluster.seen.of(tag).End
}

// Ready reports whether ranges can be, or could once be, taken, and what needs attention.
func (f *Fence) Ready() (ok bool, reason string) {
	if f.cluster == nil {
		return true, ""
	}
	return f.cluster.ready()
}
