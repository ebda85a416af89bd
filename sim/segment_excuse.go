package sim

import (
	"math"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/sim/world"
)

// exposure is an interval of a tag's numbers that some node may have reserved and that
// the database may hand out again, because it forgot, and so did, or as good as did,
// the cluster fence. A node that never held them cannot notice (spec rule L).
type exposure struct {
	kind world.Kind
	ids  leaf.Range
}

// exposures knows all of them.
type exposures struct {
	mode     *segmentMode
	exposed  map[string][]exposure
	regress  map[string]bool // the tag's row went back at some time: latches have a cause
	degraded bool            // some node took, or was allowed to take, ranges without the fence
}

// expose notes what a loss uncovers: in a database, or, with nil, in the cluster
// fence or by a node that begins to do without it.
func (x *exposures) expose(k world.Kind, db *world.Database) {
	m := x.mode
	for _, t := range m.tags {
		if db != nil && t.db != db {
			continue
		}
		row, ok := t.db.MaxID(t.name)
		if !ok {
			continue // nothing is handed out; whoever makes the row again comes here
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
		case m.fence != nil && !x.degraded:
			ids.Lo, ids.Hi = max(row, m.fence.End(t.name)), m.fence.Used(t.name)
		case t.db.IsSplit():
			ids.Hi = math.MaxInt64 // until it ends
		default:
			for i, e := range x.exposed[t.name] {
				x.exposed[t.name][i].ids.Hi = min(e.ids.Hi, used)
			}
		}
		if ids.Len() > 0 {
			x.exposed[t.name] = append(x.exposed[t.name], exposure{why, ids})
		}
	}
}

// excuses returns one per kind of loss. They cover an exposed number that two nodes
// issued, and one that a node issued twice whose disk forgot that it held it.
func (x *exposures) excuses() []Excuse {
	var all []Excuse
	for _, k := range []world.Kind{
		world.FailoverLoses, world.Restored, world.SplitBrain, world.RowRecreated, world.FenceWiped, world.FenceRestored, Degraded, ImageRestored,
	} {
		all = append(all, Excuse{Kind: k, Mode: "segment", Covers: func(a, b *Node, s Series, id int64) bool {
			if a == b && !a.Forgot {
				return false
			}
			for _, e := range x.exposed[s.Tag] {
				if e.kind == k && e.ids.Lo <= id && id < e.ids.Hi {
					return true
				}
			}
			return false
		}})
	}
	return all
}

// mayGoBack reports whether a node's IDs of a tag may be smaller than those of its
// process before.
func (m *segmentMode) mayGoBack(n *Node, tag string) bool { return n.Forgot && len(m.exposed[tag]) > 0 }

// raised is told of every alarm. It must not call the engine, or fail here, under the
// engine's locks.
func (m *segmentMode) raised(e *segmentEngine, a leaf.Alarm) {
	switch {
	case a.Code == leaf.AlarmFence && strings.Contains(a.Text, "own fence only"):
		if !m.degraded {
			m.degraded = true
			m.expose(Degraded, nil)
		}
		m.w.faults.Hit(Degraded)
		e.alone = true
	case a.Code == leaf.AlarmRegress && !m.regress[a.Subject]:
		m.w.sched.After(0, func() {
			m.w.Failf("%s latched %q without a cause: %s", e.node.Name, a.Subject, a.Text)
		})
	}
}
