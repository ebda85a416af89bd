package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"
)

// The faults that end a process, of which the other nodes notice nothing.
const (
	nodeKilled  = "node killed"
	nodeStopped = "node stopped"
	nodeDrained = "node drained"
)

// nodeTargets are the nodes, each by itself.
func (c *cluster) nodeTargets() []target {
	var all []target
	for i, n := range c.nodes {
		all = append(all, target{name: "node " + n.name, nodes: []int{i}})
	}
	return all
}

// nodeFaults are what happens to the processes of the program.
func (c *cluster) nodeFaults() []fault {
	on := func(t target) *node { return c.nodes[t.nodes[0]] }
	return []fault{
		{
			name: nodeKilled, about: "SIGKILL; it is started again.",
			group: ofNodes, targets: c.nodeTargets(), hold: seconds(1, 6),
			begin: func(_ context.Context, t target, _ *rand.Rand) (func(context.Context) error, string, error) {
				on(t).kill()
				return on(t).start, "", nil
			},
		},
		{
			name: nodeStopped, about: "SIGTERM, a clean stop; it is started again.",
			group: ofNodes, targets: c.nodeTargets(), hold: seconds(0.5, 4),
			begin: func(_ context.Context, t target, _ *rand.Rand) (func(context.Context) error, string, error) {
				return on(t).start, "", on(t).stop()
			},
		},
		{
			name: nodeDrained, about: "leaf drain, with which it serves on for a second; it is started again.",
			group: ofNodes, targets: c.nodeTargets(), hold: seconds(0.5, 4), extra: time.Second,
			begin: func(ctx context.Context, t target, _ *rand.Rand) (func(context.Context) error, string, error) {
				err := c.leafAt(ctx, on(t).dir, "drain", "--delay", "1s")
				return on(t).start, "", errors.Join(err, on(t).stop())
			},
		},
		{
			name: "node frozen", about: "SIGSTOP, for longer or shorter than its claim lasts; SIGCONT.",
			group: ofNodes, targets: c.nodeTargets(), hold: seconds(1, 9),
			begin: func(_ context.Context, t target, _ *rand.Rand) (func(context.Context) error, string, error) {
				on(t).signal(syscall.SIGSTOP)
				return func(context.Context) error {
					on(t).signal(syscall.SIGCONT)
					return nil
				}, "", nil
			},
		},
	}
}

// clockFaults move the wall clock of a running node, and back.
func (c *cluster) clockFaults() []fault {
	step := func(name string, d time.Duration) fault {
		return fault{
			name: name, about: "the wall clock of the running node is set, and set right again.",
			group: ofClocks, targets: c.nodeTargets(), hold: seconds(1, 6),
			begin: func(_ context.Context, t target, _ *rand.Rand) (func(context.Context) error, string, error) {
				k := c.nodes[t.nodes[0]].clock
				k.Set(d)
				return func(context.Context) error {
					k.Set(0)
					return nil
				}, "", nil
			},
		}
	}
	return []fault{
		step("clock back 60 s", -time.Minute), step("clock ahead 30 s", 30*time.Second), step("clock ahead 1 h", time.Hour),
		{
			name: "clock stands still", about: "the wall clock of the running node stays where it is, to a millisecond; it is set right again.",
			group: ofClocks, targets: c.nodeTargets(), hold: seconds(1, 5),
			begin: func(_ context.Context, t target, _ *rand.Rand) (func(context.Context) error, string, error) {
				k, from := c.nodes[t.nodes[0]].clock, time.Now()
				stop, ended := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(ended)
					tick := time.NewTicker(time.Millisecond)
					defer tick.Stop()
					for {
						k.Set(-time.Since(from))
						select {
						case <-tick.C:
						case <-stop:
							return
						}
					}
				}()
				return func(context.Context) error {
					close(stop)
					<-ended
					k.Set(0)
					return nil
				}, "", nil
			},
		},
	}
}
