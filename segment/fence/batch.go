package fence

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// A mark changes in memory first, and is durable when commit returns nil. After a failed write
// the mark in memory is too high at worst, and the next write begins with all of memory.
//
// Group commit: while one batch is written, later marks collect in the next batch. The caller
// that opens a batch is its leader. It waits until the previous batch is written, then writes
// and syncs its own, and wakes the followers. The fence has no goroutine of its own, and holds
// no mutex over the disk.

type batch struct {
	entries []entry
	done    chan struct{}
	err     error // set before done is closed
}

// compactAbove is how much may be appended, beside twice the size of the
// content, before the file is written anew.
const compactAbove = 1 << 20

// commit makes entries durable, in one batch with the entries of other callers. The caller
// holds mu; commit releases it.
func (f *Fence) commit(entries ...entry) error {
	b, leader := f.open, false
	var previous chan struct{}
	if b == nil {
		b, leader = &batch{done: make(chan struct{})}, true
		f.open, previous, f.last = b, f.last, b.done
	}
	// Of two marks of one tag the later one counts, and loose marks are the older ones.
	b.entries, f.loose = append(append(b.entries, f.loose...), entries...), nil
	f.mu.Unlock()

	// Neither wait can be cancelled: a leader that leaves would strand its batch, and a
	// follower gains nothing by leaving a write that is under way.
	if !leader {
		_ = f.cfg.Runtime.Wait(context.Background(), b.done, 0)
		return b.err
	}
	_ = f.cfg.Runtime.Wait(context.Background(), previous, 0)
	f.mu.Lock()
	f.open = nil
	closed := f.closed
	f.mu.Unlock()
	if b.err = errClosed; !closed {
		end := f.watch(fileName)
		b.err = f.write(b.entries)
		end()
	}
	f.mu.Lock()
	f.hangs = false
	if f.broken = b.err != nil; f.broken && !closed {
		f.cfg.Alarms.Raise(diskAlarm(fileName, b.err))
		f.mending = f.mending || f.cfg.Go(f.mend)
	} else if !f.broken {
		f.cfg.Alarms.Clear(leaf.AlarmDisk, fileName)
	}
	f.mu.Unlock()
	close(b.done)
	return b.err
}

// write makes entries durable. Only a leader calls it.
func (f *Fence) write(entries []entry) error {
	if len(entries) == 0 && f.file != nil {
		return nil // another caller has written the file anew
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
		// After a failed write or sync the content of the file is unknown, and a later
		// sync that succeeds proves nothing about this write.
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
func (f *Fence) drop() (err error) {
	if f.file != nil {
		err = f.file.Close()
	}
	if f.end != nil {
		err = errors.Join(err, f.end.Close())
	}
	f.file, f.end = nil, nil
	return err
}

// replace writes all of memory, which includes the batch, and then the number of lines. After
// a crash between the two writes the file has more lines than the number says.
func (f *Fence) replace() (err error) {
	marks := f.All() // encoding them under the lock would hold up every tag
	content := encode(f.cfg.Node, f.lines, marks)
	_ = f.drop() // everything in the files was synced, or is in the new ones
	if err := f.cfg.Disk.Replace(fileName, content); err != nil {
		return fmt.Errorf("write the fence file: %w", err)
	}
	lines := f.lines + int64(len(marks))
	if err := f.cfg.Disk.Replace(endName, encodeEnd(f.cfg.Node, lines)); err != nil {
		return fmt.Errorf("write the end of the fence file: %w", err)
	}
	if f.file, err = f.cfg.Disk.Append(fileName); err == nil {
		f.end, err = f.cfg.Disk.Append(endName)
	}
	if err != nil {
		return fmt.Errorf("open the fence file: %w", errors.Join(err, f.drop()))
	}
	f.lines, f.appended, f.whole = lines, 0, len(content)
	return nil
}

// errClosed: the fence was closed, so that another process may own the file.
var errClosed = errors.New("fence: closed")
