package sim

import (
	"time"

	"github.com/leaf-idgen/leaf"
)

// Repeated returns which of the IDs were issued before, if every repetition is allowed.
func Repeated(ranges []leaf.Range) (again []int64) {
	l, s := newLedger(), Series{Mode: "segment"}
	l.allowed = []AllowedViolation{{Kind: "any", Mode: s.Mode, Covers: func(_, _ *Node, _ Series, id int64) bool {
		if len(again) == 0 || again[len(again)-1] != id { // it is asked once per range before
			again = append(again, id)
		}
		return true
	}}}
	for _, r := range ranges {
		if err := l.add(s, issue{r, &Node{}, 1, 0}); err != nil {
			panic(err)
		}
	}
	return again
}

// WithRun returns c with another function in the place of Run, for tests of the
// runner itself.
func (c Campaign) WithRun(run func(seed uint64, opts Options) Result) Campaign {
	c.run = run
	return c
}

// ReadCorpus is for tests of its own.
var ReadCorpus = readCorpus

// Exposed reports whether an ID may repeat that one node holds beside the cluster fence
// between two moments, 0 for no end, and that both nodes were handed at moments.
func Exposed(began, ended, holder, other int) bool {
	at := func(n int) time.Duration { return time.Duration(n) * time.Second }
	node := func(handed int) *segmentNode {
		return &segmentNode{handed: map[string][]handing{"order": {{leaf.Range{Lo: 1, Hi: 11}, at(handed)}}}}
	}
	a, b := node(holder), node(other)
	x := exposure{ids: leaf.Range{Lo: 1, Hi: 11}, of: a, began: at(began), ended: at(ended)}
	first, second := x.covers(a, b, "order", 10), x.covers(b, a, "order", 10)
	if first != second || x.covers(b, node(other), "order", 10) || x.covers(a, b, "order", 11) {
		panic("an exposure depends on the order, or is of another node, or of another ID")
	}
	return first
}
