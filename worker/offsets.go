package worker

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Offsets is a comparison of clocks: how far the peers are ahead of this node.
type Offsets struct {
	Asked, Answered int

	// Median is that of the peers that answered. If their number is even, it is the one
	// of the two in the middle that is nearer to this node's clock: where the peers are
	// divided, this node's own clock decides.
	Median time.Duration

	Each []Offset // by address
}

// Offset is one peer's.
type Offset struct {
	Peer  Peer
	Ahead time.Duration
	Err   error // it did not answer
}

// String lists the peers with this node's offset to each.
func (o Offsets) String() string {
	var parts []string
	for _, e := range o.Each {
		if e.Err != nil {
			parts = append(parts, fmt.Sprintf("%s no answer (%v)", e.Peer.Address, e.Err))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %+.3f s", e.Peer.Address, -e.Ahead.Seconds()))
	}
	return strings.Join(parts, ", ")
}

// sum counts the answers and takes their median.
func (o *Offsets) sum() {
	var ahead []time.Duration
	for _, e := range o.Each {
		if e.Err == nil {
			ahead = append(ahead, e.Ahead)
		}
	}
	o.Asked, o.Answered = len(o.Each), len(ahead)
	if len(ahead) == 0 {
		return
	}
	slices.Sort(ahead)
	o.Median = ahead[(len(ahead)-1)/2]
	if other := ahead[len(ahead)/2]; other.Abs() < o.Median.Abs() {
		o.Median = other
	}
}

// confirm reports whether most of the peers that answered are within limit of this
// node's clock. A tie confirms nothing.
func (o Offsets) confirm(limit time.Duration) bool {
	near := 0
	for _, e := range o.Each {
		if e.Err == nil && e.Ahead.Abs() <= limit {
			near++
		}
	}
	return 2*near > o.Answered
}
