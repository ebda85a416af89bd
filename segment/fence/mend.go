package fence

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// heal makes the file whole again after a failed write, so that no range is
// reserved that could not be fenced. It does nothing while the file is fine.
func (f *Fence) heal() error {
	f.mu.Lock()
	switch {
	case !f.broken:
		f.mu.Unlock()
		return nil
	case f.closed:
		f.mu.Unlock()
		return errClosed
	}
	return f.commit()
}

// mendPause is the time between two attempts to heal the file that no load asks for.
const mendPause = time.Second

// mend heals the file after a failed write, until Stop: the next load may be hours
// away, or, on a node whose tags are latched, never come, and a crash would forget
// what is not on the disk.
func (f *Fence) mend() {
	for {
		_ = f.cfg.Runtime.Wait(f.running, nil, mendPause)
		if f.running.Err() != nil {
			return // Close makes the last attempt
		}
		_ = f.heal() // the alarm tells
		f.mu.Lock()
		if !f.broken {
			f.mending = false
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
	}
}

// slowDisk is how long a write may take before it is an alarm: every load of the node
// waits for it.
const slowDisk = 2 * time.Second

// watch raises the alarm for a batch whose write hangs; the end of the write clears it.
func (f *Fence) watch(b *batch) {
	_ = f.cfg.Runtime.Wait(context.Background(), b.done, slowDisk)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !b.over {
		f.cfg.Alarms.Raise(leaf.Alarm{
			Code: leaf.AlarmDisk, Subject: fileName,
			Text: fmt.Sprintf("the disk of the data directory has not written file %q for %v, so this node serves no new ranges; what it has in memory is served", fileName, slowDisk),
			Do:   "look at the health of the disk that holds the data directory; a larger step does not help",
		})
	}
}
