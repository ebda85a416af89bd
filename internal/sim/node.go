package sim

import (
	"context"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// Node is a place where a server program runs: a machine, and one process on it after
// the other. What a mode keeps per node lies in the mode.
type Node struct {
	Name    string
	World   *World
	Machine *sched.Machine
	Disk    *world.Disk
	Proc    *sched.Process // nil while the node is down

	// Elapsed clock, wall clock and scheduling are the machine's; Address is the
	// identity at a registry, which two nodes share only as a fault.
	Address string

	Forgot     bool  // its disk, or a file on it, went back or was removed
	ClonedFrom *Node // whose disk it began with, nil if it was empty

	engines []engine // of Proc, one per mode of the run
	starts  int
}

// engine is one mode's engine in one process.
type engine interface {
	// start runs in a goroutine of the process and returns when the engine has started
	// or cannot. Clients are started by it.
	start(ctx context.Context)

	// stop ends the engine cleanly. It runs in a goroutine of the process.
	stop(ctx context.Context)
}

// Up reports whether a process runs.
func (n *Node) Up() bool { return n.Proc != nil && !n.Proc.Dead() }

// Life returns the number of the current process, 1 for the first one.
func (n *Node) Life() int { return n.starts }

// Start boots a process with an engine per mode.
func (n *Node) Start() {
	if n.Up() {
		return
	}
	n.Kill() // what died by itself
	n.starts++
	n.World.starts = append(n.World.starts, n.World.sched.Elapsed())
	p := n.Machine.Boot()
	n.Proc, n.engines = p, nil
	n.World.sched.Note(n.Name, "starts", int64(n.starts))
	p.Go(func() {
		for _, m := range n.World.modes {
			e, err := m.open(n, p)
			if err != nil { // a damaged file, a layout that does not fit: an operator would see it
				n.World.sched.Note(n.Name, "cannot start: "+err.Error())
				m.refused(n, err)
				continue
			}
			n.engines = append(n.engines, e)
			p.Go(func() { e.start(context.Background()) })
		}
	})
}

// Kill ends the process as SIGKILL does, or buries one that died at an I/O boundary.
// It is for callbacks and other processes.
func (n *Node) Kill() {
	if n.Proc != nil {
		n.Proc.Kill()
		if n.World.rng.IntN(2) == 0 { // else the machine goes on, and nothing unsynced is lost
			n.Disk.Crash()
		}
		for _, m := range n.World.modes {
			m.crashed(n)
		}
	}
	n.Proc, n.engines = nil, nil
}

// Stop ends the process cleanly, and kills it after a grace of 30 s, as systemd would.
// done is called, on no goroutine of the process, when it has ended.
func (n *Node) Stop(done func()) {
	p := n.Proc
	if !n.Up() {
		done()
		return
	}
	n.World.sched.Note(n.Name, "stops", int64(n.starts))
	p.Go(func() {
		ctx, cancel := p.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		left := len(n.engines)
		ended := make(chan struct{})
		for _, e := range n.engines {
			p.Go(func() {
				e.stop(ctx)
				if left--; left == 0 {
					close(ended)
				}
			})
		}
		if left > 0 {
			_ = p.Wait(ctx, ended, 0)
		}
		n.exit(p)
		done()
	})
	n.World.sched.After(30*time.Second, func() {
		if n.Proc == p && !p.Dead() {
			n.Kill()
			done()
		}
	})
}

// exit is the end of a clean stop: what is left of the process ends with it.
func (n *Node) exit(p *sched.Process) {
	if n.Proc == p {
		n.World.sched.After(0, n.Kill)
	}
}

// Issued records IDs that a client got from this node's current process.
func (n *Node) Issued(s Series, ids leaf.Range) {
	n.World.sched.Note(n.Name, s.Mode+" "+s.Tag+s.Entity, ids.Lo, ids.Hi)
	if err := n.World.ledger.add(s, issue{ids, n, n.starts, n.World.sched.Elapsed()}); err != nil {
		n.World.Failf("%v", err)
	}
}
