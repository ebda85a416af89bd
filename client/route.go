package client

import (
	"time"

	"github.com/leaf-idgen/leaf/leafpb"
)

// route says which node issues the lane's tag, which is in strict order. Every other node forwards to
// that one, so a wrong or an old route costs a hop and nothing else.
type route struct {
	owner string // gRPC address; "": no node is known to own the tag
	epoch int64
}

// learn takes in the route of an answer. Two answers at once may both be learned or one of them
// alone: the next answer tells again.
func (l *lane) learn(r *leafpb.Route) {
	old := l.route.Load()
	switch {
	case r == nil:
		if old != nil { // the tag is in plain order now
			l.route.CompareAndSwap(old, nil)
		}
	case old == nil || r.GetEpoch() > old.epoch || r.GetEpoch() == old.epoch && old.owner == "" && r.GetOwner() != "":
		l.route.CompareAndSwap(old, &route{r.GetOwner(), r.GetEpoch()})
		l.client.members.seek(r.GetOwner(), l.rt.Now()) // so that the next request finds a link
	}
}

// forget is called when n has failed to answer, or answers that it cannot. The route to it is
// forgotten until an answer of another node shows one.
func (l *lane) forget(n *node) {
	if old := l.route.Load(); old != nil && old.owner == n.info.Load().GRPC {
		l.route.CompareAndSwap(old, nil)
	}
}

// owner returns the node that issues the lane's tag, if the tag is in strict order and the node can
// be asked now; nil otherwise. Of a node of the list that has no link yet, it makes one come.
func (f *flight) owner(now time.Time) *node {
	r := f.lane.route.Load()
	if r == nil {
		return nil
	}
	n := f.client.members.seek(r.owner, now)
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
