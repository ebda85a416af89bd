package client

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// balance chooses the node for a request. The list is replaced as a whole; a choice
// takes the lock of each node for a moment and no other one.
type balance struct {
	rt   leaf.Runtime
	zone string
	list atomic.Pointer[[]*node] // that requests are spread over

	linked atomic.Pointer[[]*node] // these, and others that are asked as owners of tags in strict order
}

// The ranks of nodes, the best first: a node is chosen only if none of a better rank is
// there. A node of weight 0 comes after all others that work.
const (
	rankOwn         = iota // usable, in the own zone
	rankOwnSuspect         // suspect since a moment ago, in the own zone
	rankOther              // usable, in another zone
	rankSuspect            // suspect
	rankLast               // usable or suspect, of weight 0
	rankDraining           // says that it does not serve
	rankEjected            // failed
	rankEjectedLast        // failed, of weight 0
	ranks
)

// scale is the weight's unit: slow start shrinks a weight of 1 too.
const scale = 100

// foreign says whether n is in another zone.
func (b *balance) foreign(n *node) bool {
	return b.zone != "" && n.info.Load().Zone != b.zone
}

// pick chooses a node that is not in except: of the best rank that is there, two at
// random by weight, and of these the one with fewer requests in flight for its weight.
// A hedge goes to nodes only that may answer. It returns nil if there is none; remote
// says that the node is in another zone.
func (b *balance) pick(now time.Time, except []*node, hedge bool) (_ *node, remote bool) {
	type candidate struct {
		node   *node
		weight int64
	}
	var memory [16]candidate
	best, candidates, total := ranks, memory[:0], int64(0)
	for _, n := range *b.list.Load() {
		if slices.Contains(except, n) || n.foreign.Load() {
			continue
		}
		rank, weight := n.standing(now, b.foreign(n))
		if rank > best || hedge && rank > rankLast {
			continue
		}
		if rank < best {
			best, candidates, total = rank, candidates[:0], 0
		}
		candidates = append(candidates, candidate{n, weight})
		total += weight
	}
	if len(candidates) == 0 {
		return nil, false
	}
	draw := func() candidate {
		at := b.below(total)
		for _, c := range candidates {
			if at -= c.weight; at < 0 {
				return c
			}
		}
		return candidates[0]
	}
	chosen := draw()
	if len(candidates) > 1 {
		if other := draw(); other.node.inFlight.Load()*chosen.weight < chosen.node.inFlight.Load()*other.weight {
			chosen = other
		}
	}
	return chosen.node, b.foreign(chosen.node)
}

// below returns a random number from 0 to below n, n at least 1: Jitter is the chance
// of a Runtime, and gives d/2 to below d.
func (b *balance) below(n int64) int64 {
	return int64(b.rt.Jitter(time.Duration(2*n))) - n
}

// standing returns the rank of a node and its weight, 1 or more.
func (n *node) standing(now time.Time, foreign bool) (rank int, weight int64) {
	weight = int64(n.info.Load().Weight) * scale
	last := weight == 0
	if last {
		weight = scale
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if passed := now.Sub(n.warm); !n.warm.IsZero() && passed < warmUp {
		// From a tenth to the whole.
		weight = max(weight*int64(warmUp+9*passed)/int64(10*warmUp), 1)
	}
	switch {
	case n.state == StateEjected && last:
		return rankEjectedLast, weight
	case n.state == StateEjected:
		return rankEjected, weight
	case n.state == StateDraining:
		return rankDraining, weight
	case last:
		return rankLast, weight
	case n.state != StateSuspect && !foreign:
		return rankOwn, weight
	case n.state != StateSuspect:
		return rankOther, weight
	case !foreign && now.Sub(n.since) < max(n.patienceLocked(0), minPatienceRemote):
		return rankOwnSuspect, weight
	}
	return rankSuspect, weight
}
