package client

import (
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf/leafpb"
)

// route says which node issues a tag in strict order, or the numbers of a section of a sequence. Every other node forwards to
// that one, so a wrong or an old route costs a hop and nothing else.
type route struct {
	owner string // gRPC address; "": no node is known to own the tag
	epoch int64
}

// routing is the route that is known of a tag, or of a section of a sequence.
type routing struct{ known atomic.Pointer[route] } // nil: plain order, as far as is known

// learn takes in the route of an answer. Two answers at once may both be learned or one of them
// alone: the next answer tells again.
func (t *routing) learn(r *leafpb.Route, m *members, now time.Time) {
	old := t.known.Load()
	switch {
	case r == nil:
		if old != nil { // the tag is in plain order now
			t.known.CompareAndSwap(old, nil)
		}
	case old == nil || r.GetEpoch() > old.epoch || r.GetEpoch() == old.epoch && old.owner == "" && r.GetOwner() != "":
		t.known.CompareAndSwap(old, &route{r.GetOwner(), r.GetEpoch()})
		m.seek(r.GetOwner(), now) // so that the next request finds a link
	}
}

// forget is called when n has failed to answer, or answers that it cannot. The route to it is
// forgotten until an answer of another node shows one.
func (t *routing) forget(n *node) {
	if old := t.known.Load(); old != nil && old.owner == n.info.Load().GRPC {
		t.known.CompareAndSwap(old, nil)
	}
}

// owner returns the node that the route leads to, if there is a route and the node can be asked now; nil otherwise. Of a
// node of the list that has no link yet, it makes one come.
func (t *routing) owner(m *members, now time.Time) *node {
	r := t.known.Load()
	if r == nil {
		return nil
	}
	n := m.seek(r.owner, now)
	if n == nil || n.foreign.Load() || !n.usable() {
		return nil
	}
	return n
}

// seek returns the node with this gRPC address, nil if it is not in the list, or has no link yet.
func (m *members) seek(address string, now time.Time) *node {
	e := (*m.addresses.Load())[address]
	if e == nil {
		return nil
	}
	last := e.sought.Swap(now.UnixNano())
	n := e.node.Load()
	if n == nil && now.Sub(time.Unix(0, last)) >= lingerTime {
		m.poke()
	}
	return n
}

// soughtLately reports whether a link is kept for lanes that ask e as an owner.
func (e *listing) soughtLately(now time.Time) bool {
	last := e.sought.Load()
	return last != 0 && now.Sub(time.Unix(0, last)) < lingerTime
}

// soughtAsLocked lets the entries of a new list be sought as those before.
func (m *members) soughtAsLocked(before []*listing) {
	sought := make(map[string]int64, len(before))
	for _, e := range before {
		sought[e.key] = e.sought.Load()
	}
	for _, e := range m.entries {
		e.sought.Store(sought[e.key])
	}
}
