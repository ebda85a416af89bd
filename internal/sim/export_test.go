package sim

import "github.com/leaf-idgen/leaf"

// Repeated returns which of the IDs were issued before, if every repetition is excused.
func Repeated(ranges []leaf.Range) (again []int64) {
	l, s := newLedger(), Series{Mode: "segment"}
	l.excuses = []Excuse{{Kind: "any", Mode: s.Mode, Covers: func(_, _ *Node, _ Series, id int64) bool {
		if len(again) == 0 || again[len(again)-1] != id { // it is asked once per range before
			again = append(again, id)
		}
		return true
	}}}
	for _, r := range ranges {
		if err := l.add(s, issue{r, &Node{}, 1}); err != nil {
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
