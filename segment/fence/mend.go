package fence

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// heal writes the file anew after a failed write, so that no range is reserved whose end could
// not be written. It does nothing if the last write succeeded.
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

// mendPause is the time between two attempts of mend.
const mendPause = time.Second

// mend repeats heal after a failed write until it succeeds, or until Stop. Without it, a crash
// would forget what is not on the disk: the next load may be hours away, and a latched tag has
// none.
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

// slowDisk is how long a write may take before the alarm: all loads of the node wait for the
// write.
const slowDisk = 2 * time.Second

// watch raises an alarm if the write of a file hangs. When the write has ended, the caller calls
// end, and then ends or renews the alarm by the outcome of the write.
func (f *Fence) watch(name string) (end func()) {
	done, over := make(chan struct{}), false
	f.cfg.Go(func() {
		_ = f.cfg.Runtime.Wait(context.Background(), done, slowDisk)
		f.mu.Lock()
		defer f.mu.Unlock()
		if over {
			return
		}
		f.hangs = f.hangs || name == fileName
		f.cfg.Alarms.Raise(leaf.Alarm{
			Code: leaf.AlarmDisk, Subject: name,
			Text: hangs(name).Error() + ", so this node serves no new ranges; what it has in memory is served",
			Do:   "look at the health of the disk that holds the data directory; a larger step does not help",
		})
	})
	return func() {
		f.mu.Lock()
		over = true
		f.mu.Unlock()
		close(done)
	}
}

// hangs is an error: loads wait for the disk, and none of them fails.
func hangs(name string) error {
	return fmt.Errorf("the disk of the data directory has not written file %q for %v", name, slowDisk)
}

// Hangs returns an error while no range can be admitted because the disk does not answer.
func (f *Fence) Hangs() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hangs {
		return hangs(fileName)
	}
	return nil
}
