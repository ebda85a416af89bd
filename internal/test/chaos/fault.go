package chaos

import (
	"context"
	"math/rand/v2"
	"time"
)

// fault is one kind of what the nemesis does.
type fault struct {
	name    string // in reports, e.g. "node killed"
	about   string // what it does and how it is healed, one sentence
	group   group
	targets []target         // one of them is drawn
	hold    [2]time.Duration // shortest and longest, before Config's pace
	alone   bool             // never together with another one
	extra   time.Duration    // what begin and heal take beside the hold, about
	// begin does it, and returns what heals it. note, if any, is for the report. With
	// an error nothing is left to heal. Chance is the fault's own.
	begin func(ctx context.Context, t target, chance *rand.Rand) (heal func(context.Context) error, note string, err error)
}

// group keeps apart what may not come together.
type group string

// The groups of faults.
const (
	ofNodes    group = "node"
	ofClocks   group = "clock"
	ofDisks    group = "disk"
	ofNetworks group = "network"
	ofServers  group = "server"
	ofRows     group = "rows"
	ofClients  group = "client"
)

// target is on whom a fault comes.
type target struct {
	name  string
	nodes []int // which nodes it is aimed at: what clients of others suffer is shown apart
	index int   // of a server
}

// seconds makes the bounds of a hold.
func seconds(shortest, longest float64) [2]time.Duration {
	return [2]time.Duration{time.Duration(shortest * float64(time.Second)), time.Duration(longest * float64(time.Second))}
}

// Event is a fault that came.
type Event struct {
	Fault  string
	Target string
	Nodes  []int
	Note   string
	Pair   bool          // another one was on at the same time
	Begin  time.Duration // since the run began
	Healed time.Duration // when its heal had returned
	Green  time.Duration // when all clients had been served since
}
