package segment

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/internal/bounded"
)

// boardName returns the name under which this process is on the board: the identity of the data
// directory. When a machine was copied with its data directory and both run, the process that
// entered last has that name, and the other processes have numbered ones: under one name the
// answer of one process would replace the answer of another. A process that starts again takes
// the first name, and the others move on, so no name stays behind for which a repair waits.
func (s *shard) boardName() string {
	node := s.alloc.cfg.NodeID
	if n := s.copies.Load(); n > 0 {
		return fmt.Sprintf("%s-%d", node, n+1)
	}
	return node
}

// copyOf reports whether name is one that boardName makes for an earlier process of a node, beside a later
// process with the same identity (copied), and returns the name of the node.
func copyOf(name string) (node string, copied bool) {
	dash := max(0, strings.LastIndexByte(name, '-'))
	n, err := strconv.Atoi(name[dash:])
	return name[:dash], err == nil && n < -1
}

// is reports whether m is this process.
func (s *shard) is(m Member) bool {
	return m.Process != 0 && m.Process == s.process.Load() && m.Node == s.boardName()
}

// firstEntries is how many of the first looks at the board write an entry each, which takes some
// seconds. When a process enters for the first time, the entry of a copy may be on its way, and
// replace the new entry. The process then enters again, and the copy takes another name.
const firstEntries = 5

// enter notes that the node is there, unless the same was noted a short time ago.
func (s *shard) enter(ctx context.Context, pause time.Duration) error {
	a, w := s.alloc, &s.watcher
	as := func() Member { return Member{Node: s.boardName(), Process: s.process.Load(), Fence: a.fence.Number()} }
	now := a.rt.Now()
	fresh := w.as == as() && since(w.entered, now) < pause && !now.Before(w.entered)
	if w.left || fresh {
		return nil
	}
	if err := s.takePlace(ctx); err != nil {
		return err
	}
	m := as()
	err := s.post(ctx, func(ctx context.Context) error { return w.board.Enter(ctx, m) })
	if err == nil {
		w.as = m
		if w.entries++; w.entries >= firstEntries {
			w.entered = now
		}
	}
	return err
}

// takePlace finds the name under which to enter. A process that enters for the first time
// takes the name of the process before it: that one has ended, unless the data directory was
// copied. Later, a process moves on while its name belongs to one that entered after it.
func (s *shard) takePlace(ctx context.Context) error {
	a, w := s.alloc, &s.watcher
	nodes, err := bounded.Do(ctx, &s.calls, a.cfg.LoadTimeout, w.board.Nodes)
	if err != nil {
		return err
	}
	if s.process.Load() == 0 {
		last := a.rt.Now().UnixNano()
		for _, m := range nodes {
			last = max(last, m.Process) // of any node: the clock may be behind that of the process before, which has left
		}
		s.process.Store(last + int64(a.rt.Jitter(1<<20))) // random: a copy may enter at the same moment
		return nil
	}
	before := s.boardName()
	for slices.ContainsFunc(nodes, func(m Member) bool { return m.Node == s.boardName() && m.Process > s.process.Load() }) {
		s.copies.Add(1)
	}
	if s.boardName() != before { // the other process replaces what this one said under the name
		clear(w.answered)
		clear(w.told)
		a.log.Warn("another process runs with the identity of this node: its data directory was copied. A repair asks both. "+
			"To end this, stop one of the two for good, or start it with a new, empty data directory, and then restart the other one: "+
			"a repair waits for the name below for a day if that process ends without a clean stop", "store", s.name, "node", a.cfg.NodeID, "as", s.boardName())
	}
	return nil
}

// since returns the time from one moment to another: the larger of what the monotonic clock and the
// wall clock say, because the monotonic clock may stand still while the machine is suspended.
func since(at, now time.Time) time.Duration {
	return max(now.Sub(at).Abs(), now.Round(0).Sub(at.Round(0)).Abs())
}
