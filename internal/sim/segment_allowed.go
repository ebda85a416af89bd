package sim

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// exposure is an interval of a tag's numbers that some node may have reserved and that
// the database may hand out again, because it forgot, and so did, or as good as did,
// the cluster fence. A node that never held them cannot notice (rule L).
type exposure struct {
	kind world.Kind
	ids  leaf.Range

	// of is the node that holds the numbers beside the cluster fence, nil if no cluster
	// fence guards: then it may be any node. The numbers that of was handed later are in the
	// fence, and so are all once of has merged its fences: no other node may take them then.
	of    *segmentNode
	began time.Duration
	ended time.Duration // 0: not yet
}

// handing is a range that a database handed to a node.
type handing struct {
	ids leaf.Range
	at  time.Duration
}

// was reports whether the node was handed the number between two moments.
func (s *segmentNode) was(tag string, id int64, from, to time.Duration) bool {
	return slices.ContainsFunc(s.handed[tag], func(h handing) bool {
		return h.ids.Lo <= id && id < h.ids.Hi && from <= h.at && h.at <= to
	})
}

// covers reports whether two nodes may both issue the number: one that held it when it
// was uncovered, and one that was handed it before the cluster fence held it again.
func (x exposure) covers(a, b *segmentNode, tag string, id int64) bool {
	if id < x.ids.Lo || x.ids.Hi <= id {
		return false
	}
	if x.of == nil {
		return true
	}
	other := b
	switch x.of {
	case a:
	case b:
		other = a
	default:
		return false
	}
	ended := x.ended
	if ended == 0 {
		ended = math.MaxInt64
	}
	return x.of.was(tag, id, 0, x.began) && other.was(tag, id, x.began, ended)
}

// exposures knows all of them.
type exposures struct {
	mode    *segmentMode
	exposed map[string][]exposure
	regress map[string]bool  // the tag's row went back at some time, behind a fence: latches have a cause
	alone   map[string]int64 // up to where numbers were issued that the cluster fence did not hold then
}

// unfenced reports whether some node may take ranges now that no cluster fence guards.
func (m *segmentMode) unfenced() bool {
	return m.fence == nil || slices.ContainsFunc(m.running(), func(e *segmentEngine) bool { return e.alone })
}

// expose notes what a loss uncovers: in a database, or, with nil, in the cluster
// fence or by a node that begins to do without it. While a node does without it, that
// is all from the row on; else it is what lies above the fence as well, be it that the
// fence forgot it, or that a node took it without and has not merged it yet.
func (x *exposures) expose(k world.Kind, db *world.Database) {
	m := x.mode
	unfenced := m.unfenced()
	for _, t := range m.tags {
		if db != nil && t.db != db {
			continue
		}
		if k == world.FenceRestored && m.fence.End(t.name) > m.fence.Used(t.name) {
			x.regress[t.name] = true // the fence forgot that numbers were returned
		}
		row, ok := t.db.MaxID(t.name)
		if !ok {
			continue // nothing is handed out; the operator who makes the row again comes here
		}
		used := t.db.Used(t.name)
		if row < used || t.db.IsSplit() {
			x.regress[t.name] = true
		}
		ids, why := leaf.Range{Lo: row, Hi: used}, k
		if k == world.RowCreated || k == world.StepEdited || k == world.StepHostile {
			why = world.SplitBrain // nothing else makes these uncover anything
		}
		switch {
		case !unfenced:
			ids.Lo, ids.Hi = max(row, m.fence.End(t.name)), max(m.fence.Used(t.name), x.alone[t.name])
		case m.fence != nil:
			why = Degraded
		}
		if unfenced && t.db.IsSplit() {
			ids.Hi = math.MaxInt64 // until it ends
		} else {
			x.bound(t)
		}
		if ids.Len() <= 0 {
			continue
		}
		now := m.w.sched.Elapsed()
		if unfenced {
			x.exposed[t.name] = append(x.exposed[t.name], exposure{kind: why, ids: ids, began: now})
			continue
		}
		for _, n := range m.w.nodes {
			if s := m.node(n); s.owes || s.alone {
				x.exposed[t.name] = append(x.exposed[t.name], exposure{kind: why, ids: ids, of: s, began: now})
			}
		}
	}
}

// bound ends what was exposed without a bound: the two sides of a database are one
// again, or all nodes respect the cluster fence.
func (x *exposures) bound(t *tag) {
	for i, e := range x.exposed[t.name] {
		if e.ids.Hi == math.MaxInt64 {
			x.exposed[t.name][i].ids.Hi = t.db.Used(t.name)
		}
	}
}

// endAbove ends what is exposed of a tag from a number on.
func (x *exposures) endAbove(tag string, floor int64) {
	for i, e := range x.exposed[tag] {
		x.exposed[tag][i].ids.Hi = min(e.ids.Hi, floor)
	}
}

// allowed returns one per kind of loss. They cover an exposed number that two nodes
// issued, and one that a node issued twice whose disk forgot that it held it.
func (x *exposures) allowed() []AllowedViolation {
	var all []AllowedViolation
	for _, k := range []world.Kind{
		world.FailoverLoses, world.Restored, world.SplitBrain, world.RowRecreated, world.FenceWiped, world.FenceRestored, Degraded, ImageRestored,
	} {
		all = append(all, AllowedViolation{Kind: k, Mode: "segment", Covers: func(a, b *Node, s Series, id int64) bool {
			if a == b && !a.Forgot {
				return false
			}
			na, nb := x.mode.node(a), x.mode.node(b)
			return slices.ContainsFunc(x.exposed[s.Tag], func(e exposure) bool { return e.kind == k && e.covers(na, nb, s.Tag, id) })
		}})
	}
	return all
}

// mayGoBack reports whether a node's IDs of a tag may be smaller than those of its
// process before.
func (m *segmentMode) mayGoBack(n *Node, tag string) bool { return n.Forgot && len(m.exposed[tag]) > 0 }

// cleared is told of every alarm that ended. That of the cluster fence ends when the
// node has merged what it took meanwhile, and everything if the fence lost something.
func (m *segmentMode) cleared(e *segmentEngine, code string) {
	if code != leaf.AlarmFence || !e.alone && !e.found {
		return
	}
	s := e.state
	if !e.node.Forgot { // else what it merged may be too little
		s.owes = s.owes && (!e.found || e.opened < m.fence.Losses())
		s.alone = false
	}
	if e.found = false; !s.owes && !s.alone {
		m.merged(s)
	}
	if !e.alone {
		return
	}
	if e.alone = false; !m.unfenced() {
		for _, t := range m.tags {
			m.bound(t)
		}
	}
}

// merged ends what the node left uncovered.
func (x *exposures) merged(s *segmentNode) {
	for _, all := range x.exposed {
		for i, e := range all {
			if e.of == s && e.ended == 0 {
				all[i].ended = x.mode.w.sched.Elapsed()
			}
		}
	}
}

// misled reports whether the node took its fence, that of the node which told it of a
// regress, or that of a node which merged it into the cluster fence, for newer than it is: an
// older fence file knows no return.
func (m *segmentMode) misled(e *segmentEngine, a leaf.Alarm) bool {
	older := func(n *Node) bool { return n.Forgot || n.ClonedFrom != nil }
	others := strings.Contains(a.Text, "another node holds") || strings.Contains(a.Text, "the cluster fence holds")
	return older(e.node) || others && slices.ContainsFunc(m.w.nodes, older)
}

// raised is told of every alarm. It must not call the engine, or fail here, under the
// engine's locks.
func (m *segmentMode) raised(e *segmentEngine, a leaf.Alarm) {
	switch {
	// First, because its text goes on with a cause, which may be that the fence was replaced.
	case a.Code == leaf.AlarmFence && strings.Contains(a.Text, "own fence only"):
		m.w.faults.Hit(Degraded)
		if !e.alone {
			e.alone, e.state.alone = true, true
			m.expose(Degraded, nil)
		}
	case a.Code == leaf.AlarmFence && (strings.Contains(a.Text, "was replaced") || strings.Contains(a.Text, "lost entries")):
		e.found = true
	case a.Code == leaf.AlarmRegress && !m.regress[a.Subject] && !m.misled(e, a):
		m.w.sched.After(0, func() {
			m.w.Failf("%s latched %q without a cause: %s", e.node.Name, a.Subject, a.Text)
		})
	}
}
