package segment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/leaf-idgen/leaf"
)

// fence keeps a node's marks in memory and in the fence file. A mark is set in
// memory first and durable when change returns nil. The other order is not needed:
// after a failed write memory holds a mark that is at most too careful, and the
// next write starts with the whole content of memory.
//
// Writes that arrive while another is being synced are collected into one batch.
// The caller that opens a batch is its leader: it waits for the batch before, takes
// what has been collected by then, writes and syncs it and tells the others. No
// goroutine belongs to the fence, and no mutex is held over the disk.
type fence struct {
	disk   Disk
	rt     leaf.Runtime
	node   string
	alarms leaf.Alarms
	tasks  *group
	quit   chan struct{} // closed at shutdown

	mu      sync.Mutex
	marks   map[string]Mark
	latched int            // tags that are latched
	repairs int            // how many this node has carried out, see look
	looks   int            // how many have begun
	refused map[string]int // the number of looks when a range of the tag was refused last
	said    map[string]int // how often this node said what it holds of the tag, see say

	returning map[string]int64 // where tails end whose return may still reach the database

	// own is where this node's ranges of a tag end, while the mark is higher because the
	// node heard of a repair or a regress. The mark of a tag that is missing is its own.
	own     map[string]int64
	broken  bool          // the last write failed
	mending bool          // a task tries it again
	closed  bool          // nothing is written any more
	open    *batch        // collecting, nil if none
	loose   []fenceEntry  // set in memory, written with the next batch
	last    chan struct{} // done channel of the newest batch, closed once it is written

	// The leader alone touches these; the done channels order one leader after
	// another.
	file     AppendFile // nil: the next write replaces both files
	end      AppendFile // of the file that says how many lines there are
	lines    int64      // of all that was ever written
	appended int        // bytes since the files were last replaced
	whole    int        // bytes of the file when it was last replaced
}

type batch struct {
	entries []fenceEntry
	done    chan struct{}
	err     error // set before done is closed
	over    bool  // set under mu: the write has ended
}

// compactAbove is how much may be appended, beside twice the size of the
// content, before the file is written anew.
const compactAbove = 1 << 20

// openFence reads the fence file, or makes it.
func openFence(a *Allocator) (*fence, error) {
	f := &fence{
		disk: a.disk, rt: a.rt, node: a.cfg.NodeID, alarms: a.alarms, tasks: &a.tasks, quit: a.closing,
		marks: map[string]Mark{}, refused: map[string]int{}, said: map[string]int{}, own: map[string]int64{},
		returning: map[string]int64{},
	}
	if err := f.read(); err != nil {
		return nil, err
	}
	// Always written anew: that drops a torn line and old marks, and shows at the
	// start that the disk can be written.
	if err := f.replace(); err != nil {
		return nil, err
	}
	f.last = make(chan struct{})
	close(f.last)
	return f, nil
}

// all returns a copy of the marks.
func (f *fence) all() map[string]Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.marks)
}

// mark returns what is known of a tag.
func (f *fence) mark(tag string) Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marks[tag]
}

// reserved returns the highest end of the ranges that this node reserved of a tag, as far
// as this process knows: after a restart, what an earlier one heard counts as reserved.
func (f *fence) reserved(tag string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if own, heard := f.own[tag]; heard {
		return own
	}
	return f.marks[tag].ranges()
}

// errOvertaken: the mark is no longer what the caller saw. Nothing was changed.
var errOvertaken = errors.New("segment: the tag's mark has changed meanwhile")

// advance raises the mark to high for a range that was just reserved. It is errOvertaken if
// the mark has changed since the load began, or if this node has said meanwhile what it
// holds. The mark changes when a load of a deleted tag ends beside one of the tag's
// successor: neither may undo what the other knows.
func (f *fence) advance(tag string, from loadStart, high int64) error {
	unchanged := func(m Mark) bool { return m == from.Mark && f.said[tag] == from.said }
	return f.change(tag, unchanged, Mark{High: high})
}

// latch latches the tag in memory, whatever happened to its mark meanwhile, and raises the
// alarm. settle makes it durable.
func (f *fence) latch(tag string, seen int64, why leaf.Alarm) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.alarms.Raise(why)
	f.refused[tag] = f.looks
	m := Mark{High: max(f.marks[tag].High, seen), Latched: true, Unread: true}
	f.setLocked(tag, m)
	f.loose = append(f.loose, entryOf(tag, m))
}

// lower takes the mark down to what was issued. It is errOvertaken if the mark has changed.
func (f *fence) lower(tag string, from Mark, issued int64) error {
	return f.change(tag, func(m Mark) bool { return m == from }, Mark{High: issued})
}

// change sets a tag's mark to m if unchanged, called under mu, allows it, and returns when
// the result is durable. After another error than errOvertaken and errClosed the new mark
// holds in memory, and may be on the disk or not.
func (f *fence) change(tag string, unchanged func(Mark) bool, m Mark) error {
	f.mu.Lock()
	switch {
	case f.closed:
		f.mu.Unlock()
		return errClosed
	case !unchanged(f.marks[tag]):
		f.mu.Unlock()
		return fmt.Errorf("%w: tag %q", errOvertaken, tag)
	}
	f.setLocked(tag, m)
	delete(f.own, tag)
	return f.commit(entryOf(tag, m))
}

// setLocked sets a mark in memory. f.mu is held.
func (f *fence) setLocked(tag string, m Mark) {
	switch old := f.marks[tag]; {
	case m.Latched && !old.Latched:
		f.latched++
	case old.Latched && !m.Latched:
		f.latched--
	}
	f.marks[tag] = m
}

// commit makes entries durable together with those that others bring meanwhile. It
// is called under mu, and releases it.
func (f *fence) commit(entries ...fenceEntry) error {
	b, leader := f.open, false
	var previous chan struct{}
	if b == nil {
		b, leader = &batch{done: make(chan struct{})}, true
		f.open, previous, f.last = b, f.last, b.done
	}
	// What is loose was set before entries: of two marks of one tag the later counts.
	b.entries, f.loose = append(append(b.entries, f.loose...), entries...), nil
	f.mu.Unlock()

	// Neither wait takes the caller's context: a leader that left would strand its
	// batch, and a follower gains nothing from leaving a write that is under way.
	if !leader {
		_ = f.rt.Wait(context.Background(), b.done, 0)
		return b.err
	}
	_ = f.rt.Wait(context.Background(), previous, 0)
	f.mu.Lock()
	f.open = nil
	closed := f.closed
	f.mu.Unlock()
	if b.err = errClosed; !closed {
		f.tasks.start(func() { f.watch(b) })
		b.err = f.write(b.entries)
	}
	f.mu.Lock()
	b.over = true
	if f.broken = b.err != nil; f.broken && !closed {
		f.alarms.Raise(diskAlarm(fenceName, b.err))
		f.mending = f.mending || f.tasks.start(f.mend)
	} else if !f.broken {
		f.alarms.Clear(leaf.AlarmDisk, fenceName)
	}
	f.mu.Unlock()
	close(b.done)
	return b.err
}

// write makes entries durable. Only a leader calls it.
func (f *fence) write(entries []fenceEntry) error {
	if len(entries) == 0 && f.file != nil {
		return nil // somebody else has healed it
	}
	if f.file == nil || f.appended > compactAbove+2*f.whole {
		return f.replace()
	}
	line := appendLine(nil, entries)
	end := appendLine(nil, f.lines+1)
	err := appendTo(f.file, line)
	if err == nil {
		err = appendTo(f.end, end)
	}
	if err != nil {
		// After a failed write or sync nobody knows what the file holds, and a
		// later sync that succeeds proves nothing about this one.
		return fmt.Errorf("append to the fence file: %w", errors.Join(err, f.drop()))
	}
	f.lines++
	f.appended += len(line) + len(end)
	return nil
}

func appendTo(file AppendFile, line []byte) error {
	if _, err := file.Write(line); err != nil {
		return err
	}
	return file.Sync()
}

// drop closes the files.
func (f *fence) drop() (err error) {
	if f.file != nil {
		err = f.file.Close()
	}
	if f.end != nil {
		err = errors.Join(err, f.end.Close())
	}
	f.file, f.end = nil, nil
	return err
}

// replace writes the whole content of memory, which includes the batch, and then how
// many lines there are. After a crash in between there are more.
func (f *fence) replace() (err error) {
	marks := f.all() // encoding them under the lock would hold up every tag
	content := encodeFence(f.node, f.lines, marks)
	_ = f.drop() // everything in the files was synced, or is in the new ones
	if err := f.disk.Replace(fenceName, content); err != nil {
		return fmt.Errorf("write the fence file: %w", err)
	}
	lines := f.lines + int64(len(marks))
	if err := f.disk.Replace(fenceEndName, encodeFenceEnd(f.node, lines)); err != nil {
		return fmt.Errorf("write the end of the fence file: %w", err)
	}
	if f.file, err = f.disk.Append(fenceName); err == nil {
		f.end, err = f.disk.Append(fenceEndName)
	}
	if err != nil {
		return fmt.Errorf("open the fence file: %w", errors.Join(err, f.drop()))
	}
	f.lines, f.appended, f.whole = lines, 0, len(content)
	return nil
}

// errClosed: the fence was closed, so that another process may own the file.
var errClosed = errors.New("segment: the fence is closed")

// close lets the write that is under way end, as long as ctx allows, and forbids
// every later one. What an earlier write failed to make durable, a latch perhaps, is
// tried once more.
func (f *fence) close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	last := f.last
	f.mu.Unlock()
	if err := f.rt.Wait(ctx, last, 0); err != nil {
		return fmt.Errorf("close the fence file: %w", err)
	}
	f.mu.Lock()
	broken := f.broken || len(f.loose) > 0
	f.mu.Unlock()
	return within(ctx, f.rt, "close the fence file", func() error {
		if broken {
			if err := f.replace(); err != nil {
				return err
			}
		}
		return f.drop()
	})
}

// within calls f, which uses the disk, and waits for its end as long as ctx allows.
func within(ctx context.Context, rt leaf.Runtime, what string, f func() error) error {
	var result error // read only after done is closed
	done := make(chan struct{})
	rt.Go(func() {
		defer close(done)
		result = f()
	})
	if err := rt.Wait(ctx, done, 0); err != nil {
		return fmt.Errorf("%s: the disk does not answer: %w", what, err)
	}
	return result
}

// latchedTags returns the number of latched tags.
func (f *fence) latchedTags() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latched
}
