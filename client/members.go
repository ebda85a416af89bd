package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf/discovery"
)

const (
	// lingerTime is how long a link stays that is not needed any more, because a node that
	// the client prefers is back: that node may fail again.
	lingerTime = time.Minute

	// restTime bounds how soon a node is asked again that was given up because it and too
	// many others failed, between half of it and all.
	restTime = 30 * time.Second
)

// members are the nodes that the client uses: the first ones of the list, in its order of
// preference, that work. Each that fails is kept and looked at, and one more is used in
// its place. At most size nodes that work and size that fail have a link, and size that are asked
// as owners of tags in strict order only, so neither the length of the list nor an outage multiplies
// connections and health checks.
type members struct {
	client  *Client
	subset  subset
	changed chan struct{} // holds one: a node fails, or works again, or is sought as an owner

	addresses atomic.Pointer[map[string]*listing] // of the current list, by gRPC address; it never changes

	mu      sync.Mutex
	entries []*listing           // of the current list, in the order of preference
	linked  map[string]*node     // by key
	needed  map[string]time.Time // by key: when a linked node was last among the chosen
	resting map[string]time.Time // by key: until when a node that failed is not asked
}

func newMembers(c *Client, size int, zone string) *members {
	m := &members{
		client:  c,
		subset:  subset{seed: uint64(c.rt.Jitter(math.MaxInt64)), size: size, zone: zone}, //nolint:gosec // it is not negative
		changed: make(chan struct{}, 1),
		linked:  make(map[string]*node),
		needed:  make(map[string]time.Time),
		resting: make(map[string]time.Time),
	}
	m.addresses.Store(&map[string]*listing{})
	return m
}

// poke asks for another choice of nodes: one fails, or works again, or is sought. It may be called with any lock held.
func (m *members) poke() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// tend replaces nodes that fail, and ends links that are not needed any more, until ctx
// ends. Another goroutine reads the list, so that a registry that hangs does not hold up
// the replacement.
func (m *members) tend(ctx context.Context) {
	rt := m.client.rt
	for rt.Wait(ctx, m.changed, rt.Jitter(checkEvery)) == nil && ctx.Err() == nil {
		m.mu.Lock()
		m.chooseLocked(ctx)
		m.mu.Unlock()
	}
}

// apply makes the list current and returns how many nodes of it can be used, or why none can. Nodes that
// stay keep their connection and health; a new weight holds from the next request on. A list
// of nothing usable changes nothing.
func (m *members) apply(ctx context.Context, list []discovery.Node) (usable int, why error) {
	entries, why := m.usable(list)
	if len(entries) == 0 {
		return 0, why
	}
	m.subset.sort(entries)
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.entries
	m.entries = entries
	m.soughtAsLocked(before)
	if m.chooseLocked(ctx) == 0 {
		m.entries = before
		return 0, errors.New("there is no link to any, and the log says why")
	}
	addresses := make(map[string]*listing, len(entries))
	for _, e := range slices.Backward(entries) { // of two with one address the preferred one
		addresses[e.info.GRPC] = e
	}
	m.addresses.Store(&addresses)
	left := 0
	for _, e := range entries {
		if !e.useless {
			left++
		}
	}
	m.client.stats.listed.Store(int64(left))
	return left, nil
}

// usable returns the entries of the list that can be nodes of this client, and why the last one of the others cannot.
func (m *members) usable(list []discovery.Node) (entries []*listing, why error) {
	c := m.client
	why = errors.New("it has no gRPC address")
	others := int64(0)
	seen := make(map[string]bool, len(list))
	for _, info := range list {
		key := info.ID + " " + info.GRPC
		if seen[key] || info.GRPC == "" { // without: it serves other protocols
			continue
		}
		err := errors.Join(checkNode(info), c.checkHost(info))
		if err == nil {
			if err = c.cluster.admit(info.Cluster); err != nil {
				others++
			}
		}
		if err != nil {
			why = fmt.Errorf("node %q: %w", info.ID, err)
			c.log.add(slog.LevelWarn, "a node of the list is of no use", "node", info.ID, "error", err)
			continue
		}
		seen[key] = true
		entries = append(entries, &listing{key: key, info: info})
	}
	c.stats.others.Store(others)
	return entries, why
}

// chooseLocked links the nodes that are to be used, and no others, and returns how many
// there are. It changes nothing if there would be none.
func (m *members) chooseLocked(ctx context.Context) int {
	now := m.client.rt.Now()
	size := m.subset.size
	var chosen, spare, owners []*node
	working, failing := 0, 0
	for _, e := range m.entries {
		n := m.linked[e.key]
		switch {
		case e.useless:
			continue
		case working >= size && len(owners) < size && e.soughtLately(now):
			if n == nil && !now.Before(m.resting[e.key]) {
				n = m.linkLocked(ctx, e, now)
			}
			if n != nil {
				n.info.Store(&e.info)
				owners = append(owners, n)
			}
			continue
		case working >= size:
			if n != nil && n.works() && now.Sub(m.needed[e.key]) < lingerTime {
				n.info.Store(&e.info)
				spare = append(spare, n)
			}
			continue
		case n != nil && !n.works():
			if failing == size && len(m.entries) > 2*size {
				m.resting[e.key] = now.Add(m.client.rt.Jitter(restTime))
				continue // another one has its place
			}
			failing++
		case n == nil:
			if now.Before(m.resting[e.key]) {
				continue
			}
			if n = m.linkLocked(ctx, e, now); n == nil {
				continue
			}
			working++
		default:
			working++
		}
		n.info.Store(&e.info)
		m.needed[e.key] = now
		chosen = append(chosen, n)
	}
	if len(chosen) == 0 && len(m.resting) > 0 {
		clear(m.resting) // a list of nodes that failed just now is better than the one before
		return m.chooseLocked(ctx)
	}
	if len(chosen) == 0 {
		return 0
	}
	chosen = append(chosen, spare[:min(len(spare), max(2*size-len(chosen), 0))]...)
	m.publishLocked(chosen, owners, now)
	return len(chosen)
}

// publishLocked makes the chosen nodes those of the next request, and the owners those of lanes that
// seek them, and ends the links to all others.
func (m *members) publishLocked(chosen, owners []*node, now time.Time) {
	byKey := func(a, b *node) int { return cmp.Compare(a.key, b.key) }
	slices.SortFunc(chosen, byKey)
	m.client.nodes.list.Store(&chosen)
	linked := slices.Concat(chosen, owners)
	slices.SortFunc(linked, byKey)
	m.client.nodes.linked.Store(&linked)
	for key, n := range m.linked {
		if !slices.Contains(linked, n) {
			n.stop()
			delete(m.linked, key)
			delete(m.needed, key)
		}
	}
	for _, e := range m.entries {
		e.node.Store(m.linked[e.key])
	}
	for key, until := range m.resting {
		if !now.Before(until) {
			delete(m.resting, key)
		}
	}
}

// linkLocked makes the link to the node of e.
func (m *members) linkLocked(ctx context.Context, e *listing, now time.Time) *node {
	c := m.client
	l, err := c.dial(e.info)
	if err != nil {
		e.useless = true
		c.log.add(slog.LevelWarn, "a node of the list is of no use", "node", e.info.ID, "error", err)
		return nil
	}
	listed, stop := context.WithCancel(ctx)
	n := &node{key: e.key, rt: c.rt, log: c.log, link: l, changed: m.poke, kick: make(chan struct{}, 1), stop: stop}
	n.info.Store(&e.info)
	if len(*c.nodes.list.Load()) > 0 { // others were there before it
		n.warm = now
	}
	m.linked[e.key] = n
	if !c.tasks.Start(func() { n.watch(ctx, listed) }) {
		stop()
		l.Close()
	}
	return n
}
