package servertest

import (
	"testing"
	"time"
)

// Cases returns the names of all cases.
func Cases() []string {
	var names []string
	for _, c := range cases {
		names = append(names, c.name)
	}
	return names
}

// RunCase runs one case on any testing.TB, with little patience.
func RunCase(t testing.TB, name string, o Options, start Start) {
	for _, c := range cases {
		if c.name == name && (c.leftOut == nil || !c.leftOut(o)) {
			c.run(&bench{TB: t, start: start, opt: o, patience: 10 * time.Second, deadline: 20 * time.Millisecond})
		}
	}
}
