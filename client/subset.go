package client

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/leaf-idgen/leaf/discovery"
)

// defaultMaxNodes is how many nodes a client uses. Eight are enough for the choice between
// two random ones, and when one fails the others get an eighth more. If a third of a large
// cluster fails at once, all eight of a client fail in 1 of 6,500 clients.
const defaultMaxNodes = 8

// maxMaxNodes is the largest value of WithMaxNodes.
const maxMaxNodes = 1000

// subset is the order in which one client prefers the nodes of a list. Rendezvous hashing:
// each node has a score, from the client's random seed and the node's key alone. So
// clients prefer different nodes, and a node that comes or goes changes at most one of the
// first nodes of a client.
type subset struct {
	seed uint64 // random, of this client
	size int    // how many nodes the client uses
	zone string // of the client; "": it treats all nodes alike
}

// listing is an entry of the list that can be a node of this client.
type listing struct {
	key     string // of the node
	info    discovery.Node
	useless bool // no link can be made to it

	sought atomic.Int64         // when a lane last looked for it as the owner of its tag, in ns since 1970; 0: never
	node   atomic.Pointer[node] // that is linked; nil: none
}

// sort puts the entries in the order of preference. A quarter of the places belongs to
// other zones, so that links to them exist when the own zone fails. Nodes of weight 0
// come last.
func (s subset) sort(entries []*listing) {
	type ranked struct {
		*listing
		group int
		score uint64
	}
	order := make([]ranked, len(entries))
	for i, e := range entries {
		order[i] = ranked{listing: e, group: s.group(e.info), score: s.score(e.key)}
	}
	slices.SortFunc(order, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(b.score, a.score), cmp.Compare(a.key, b.key))
	})
	// The own zone beyond its places comes after the first nodes of the other zones.
	remote := s.size / 4
	for i := range order {
		switch order[i].group {
		case groupOwn:
			if i >= s.size-remote {
				order[i].group = groupOwnBeyond
			}
		case groupOther:
			if remote > 0 {
				order[i].group = groupOtherFirst
				remote--
			}
		}
	}
	slices.SortStableFunc(order, func(a, b ranked) int { return cmp.Compare(a.group, b.group) })
	for i, r := range order {
		entries[i] = r.listing
	}
}

// The groups of nodes, the most preferred first.
const (
	groupOwn        = iota // of the own zone
	groupOtherFirst        // the first of other zones
	groupOwnBeyond         // of the own zone, beyond its places
	groupOther             // of other zones
	groupLast              // of weight 0
)

func (s subset) group(n discovery.Node) int {
	switch {
	case n.Weight == 0:
		return groupLast
	case s.zone != "" && n.Zone != s.zone:
		return groupOther
	}
	return groupOwn
}

// score is the same for the same client and node, and evenly spread over both.
func (s subset) score(key string) uint64 {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, s.seed), key...))
	return binary.BigEndian.Uint64(sum[:])
}
