package fence

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
)

// Number returns NumberOf the cluster fence that holds the ends of all ranges of this node. It
// is 0 without a cluster fence, while some ends are not in it, with Config.Degrade, and while a suspect
// shows that it may lack numbers of other nodes.
func (f *Fence) Number() int64 {
	c := f.cluster
	if c == nil || f.cfg.Degrade {
		return 0
	}
	c.mu.Lock()
	known, losses := c.known, c.losses
	c.mu.Unlock()
	if losses > 0 || !known.Merged || known.Stranded && f.hasSuspects() {
		return 0
	}
	return NumberOf(known.Space)
}

// NumberOf returns a number from 1 for an incarnation of a cluster fence, another one for each
// incarnation, and 0 for none.
func NumberOf(space string) int64 {
	if space == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(space))
	return int64(binary.BigEndian.Uint64(sum[:])>>1) | 1
}

// HasCluster reports whether there is a cluster fence.
func (f *Fence) HasCluster() bool { return f.cluster != nil }

// Covers reports whether the cluster fence makes each node refuse what any node has reserved: there is one, and no ranges are
// taken without it.
func (f *Fence) Covers() bool { return f.cluster != nil && !f.cluster.isDegraded() }

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

// RaiseCluster raises the tag's entry in the cluster fence to end, or creates it. space is the
// incarnation that ClusterEntry returned.
func (f *Fence) RaiseCluster(ctx context.Context, space, tag string, end int64) error {
	return f.cluster.raiseTo(ctx, space, tag, end, false)
}

// SeenInCluster returns where the tag's entry in the cluster fence ended when this process
// saw it last, 0 if never.
func (f *Fence) SeenInCluster(tag string) int64 {
	if f.cluster == nil {
		return 0
	}
	return f.cluster.seen.of(tag).End
}

// Ready reports whether the cluster fence, if there is one, was open once, or degraded loads
// are allowed. reason says what needs attention, also if ok is true.
func (f *Fence) Ready() (ok bool, reason string) {
	if f.cluster == nil {
		return true, ""
	}
	return f.cluster.ready()
}
