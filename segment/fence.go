package segment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/leaf-idgen/leaf"
)

// fence keeps a node's marks in memory and in the fence file. A mark is set in
// memory first and durable when set returns nil. The other order is not needed:
// after a failed write memory holds a mark that is at most too careful, and the
// next write starts with the whole content of memory.
//
// Writes that arrive while another is being synced are collected into one batch.
// The caller that opens a batch is its leader: it waits for the batch before, takes
// what has been collected by then, writes and syncs it and tells the others. No
// goroutine belongs to the fence, and no mutex is held over the disk.
type fence struct {
	disk Disk
	rt   leaf.Runtime
	node string

	mu     sync.Mutex
	marks  map[string]Mark
	broken bool          // the last write failed
	open   *batch        // collecting, nil if none
	last   chan struct{} // done channel of the newest batch, closed once it is written

	// The leader alone touches these; the done channels order one leader after
	// another.
	file     AppendFile // nil: the next write replaces the whole file
	appended int        // bytes since the file was last replaced
	whole    int        // bytes of the file when it was last replaced
}

type batch struct {
	entries []fenceEntry
	done    chan struct{}
	err     error // set before done is closed
}

// compactAbove is how much may be appended, beside twice the size of the
// content, before the file is written anew.
const compactAbove = 1 << 20

// openFence reads the fence file, or makes it.
func openFence(disk Disk, rt leaf.Runtime, node string) (*fence, error) {
	f := &fence{disk: disk, rt: rt, node: node, marks: map[string]Mark{}}
	content, err := disk.ReadFile(fenceName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read the fence file: %w", err)
	default:
		if f.marks, _, err = decodeFence(content, node); err != nil {
			return nil, err
		}
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

// mark returns what is known of a tag.
func (f *fence) mark(tag string) Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marks[tag]
}

// set sets a tag's mark and returns when it is durable. After an error the mark
// holds in memory, and nobody knows whether it is on the disk. The caller makes
// sure that no two calls for one tag overlap.
func (f *fence) set(tag string, m Mark) error {
	f.mu.Lock()
	f.marks[tag] = m
	b, leader := f.open, false
	var before chan struct{}
	if b == nil {
		b, leader = &batch{done: make(chan struct{})}, true
		f.open, before, f.last = b, f.last, b.done
	}
	b.entries = append(b.entries, fenceEntry{tag, m.High, m.Latched})
	f.mu.Unlock()

	// Neither wait takes the caller's context: a leader that left would strand its
	// batch, and a follower gains nothing from leaving a write that is under way.
	if !leader {
		_ = f.rt.Wait(context.Background(), b.done, 0)
		return b.err
	}
	_ = f.rt.Wait(context.Background(), before, 0)
	f.mu.Lock()
	f.open = nil
	f.mu.Unlock()
	b.err = f.write(b.entries)
	f.mu.Lock()
	f.broken = b.err != nil
	f.mu.Unlock()
	close(b.done)
	return b.err
}

// write makes entries durable. Only a leader calls it.
func (f *fence) write(entries []fenceEntry) error {
	if f.file == nil || f.appended > compactAbove+2*f.whole {
		return f.replace()
	}
	line := appendLine(nil, entries)
	_, err := f.file.Write(line)
	if err == nil {
		err = f.file.Sync()
	}
	if err != nil {
		// After a failed write or sync nobody knows what the file holds, and a
		// later sync that succeeds proves nothing about this one.
		err = errors.Join(err, f.file.Close())
		f.file = nil
		return fmt.Errorf("append to the fence file: %w", err)
	}
	f.appended += len(line)
	return nil
}

// replace writes the whole content of memory, which includes the batch.
func (f *fence) replace() error {
	f.mu.Lock()
	content := encodeFence(f.node, f.marks)
	f.mu.Unlock()
	if f.file != nil {
		_ = f.file.Close() // everything in it was synced; the new file takes its place
		f.file = nil
	}
	if err := f.disk.Replace(fenceName, content); err != nil {
		return fmt.Errorf("write the fence file: %w", err)
	}
	file, err := f.disk.Append(fenceName)
	if err != nil {
		return fmt.Errorf("open the fence file: %w", err)
	}
	f.file, f.appended, f.whole = file, 0, len(content)
	return nil
}

// close closes the file. No set may be under way or follow.
func (f *fence) close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// heal makes the file whole again after a failed write, so that no range is
// reserved that could not be fenced. It does nothing while the file is fine.
func (f *fence) heal(tag string) error {
	f.mu.Lock()
	broken, m := f.broken, f.marks[tag]
	f.mu.Unlock()
	if !broken {
		return nil
	}
	return f.set(tag, m)
}
