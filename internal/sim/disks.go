package sim

import (
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// DiskTrouble is a time in which a disk is full, slow, or fails now and then. What it
// does to whom is counted by kinds of its own.
const DiskTrouble world.Kind = "disk trouble"

// mostNodes bounds the copies that are made of machines.
const mostNodes = 5

// diskFaults returns what the nemesis may do to any disk.
func (w *World) diskFaults() []fault {
	return []fault{
		{DiskTrouble, 5, func() bool {
			d := w.nodes[w.rng.IntN(len(w.nodes))].Disk
			switch w.rng.IntN(4) {
			case 0:
				d.Full = true
			case 1:
				d.Refuse = 0.3
			case 2:
				d.Lie = 0.3
			default:
				d.Slow = w.upTo(5 * time.Second)
			}
			w.sched.After(w.upTo(3*time.Minute), func() { soundDisk(d) })
			return true
		}},
		{world.FileTorn, 2, w.onFile(func(n *Node, name string) bool { return n.Disk.Tear(name) })},
		{world.FileOlder, 2, w.onFile(func(n *Node, name string) bool { return n.Disk.RollBack(name, w.upTo(w.sched.Elapsed()+1)) })},
		{world.FileVanished, 2, w.onFile(func(n *Node, name string) bool { return n.Disk.Vanish(name) })},
		{world.DiskOlder, 1, w.onStopped(func(n *Node) bool { return n.Disk.RollBackAll(w.upTo(w.sched.Elapsed() + 1)) })},
		{world.MachineCloned, 1, w.onUpOK(func(n *Node) bool { return w.clone(n) != nil })},
	}
}

func soundDisk(d *world.Disk) { d.Full, d.Refuse, d.Lie, d.Slow = false, 0, 0, 0 }

// file returns the name of a random file of the node, "" if there is none.
func (w *World) file(n *Node) string {
	names := n.Disk.Names()
	if len(names) == 0 {
		return ""
	}
	return names[w.rng.IntN(len(names))]
}

// onFile makes a strike on one file of a random node, whose process dies first. Of the
// fence file it takes no memory away that the node does not miss: either it starts with
// all marks, or not at all. The second file of the fence is what tells.
func (w *World) onFile(f func(n *Node, name string) bool) func() bool {
	return func() bool {
		n := w.nodes[w.rng.IntN(len(w.nodes))]
		name := w.file(n)
		if name == "" {
			return false
		}
		n.Kill()
		w.restartLater(n)
		if !f(n, name) {
			return false
		}
		n.Forgot = n.Forgot || name != "fence"
		return true
	}
}

// onStopped makes a strike on the disk of a random node, whose process dies first.
func (w *World) onStopped(f func(n *Node) bool) func() bool {
	return func() bool {
		n := w.nodes[w.rng.IntN(len(w.nodes))]
		if len(n.Disk.Names()) == 0 {
			return false
		}
		n.Kill()
		w.restartLater(n)
		if !f(n) {
			return false
		}
		n.Forgot = true
		return true
	}
}

// onUpOK is onUp for a strike that may find nothing to do.
func (w *World) onUpOK(f func(n *Node) bool) func() bool {
	return func() bool {
		n := w.nodes[w.rng.IntN(len(w.nodes))]
		return n.Up() && f(n)
	}
}

// clone copies a machine with its disk, as an administrator does who starts a virtual machine
// from an image of a running one. Half of the copies keep the address. It returns nil
// if there are copies enough.
func (w *World) clone(n *Node) *Node {
	if len(w.nodes) >= mostNodes {
		return nil
	}
	i := len(w.nodes)
	m := w.sched.NewMachine(fmt.Sprintf("node-%d", i), n.Machine.Wall().Add(-n.Machine.Offset()))
	m.Step(n.Machine.Offset())
	c := &Node{Name: m.Name(), World: w, Machine: m, Address: n.Address, Disk: n.Disk.Clone(), Forgot: n.Forgot, ClonedFrom: n}
	if w.rng.IntN(2) == 0 {
		c.Address = fmt.Sprintf("10.0.0.%d:8080", i+1)
	}
	w.faults.Hit(world.MachineCloned)
	w.nodes = append(w.nodes, c)
	w.sched.After(w.upTo(time.Minute), c.Start)
	return c
}
