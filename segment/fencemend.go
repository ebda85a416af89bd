package segment

import (
	"context"
	"time"
)

// heal makes the file whole again after a failed write, so that no range is
// reserved that could not be fenced. It does nothing while the file is fine.
func (f *fence) heal() error {
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

// mend heals the file after a failed write, until shutdown: the next load may be hours
// away, or, on a node whose tags are latched, never come, and a crash would forget
// what is not on the disk.
func (f *fence) mend() {
	for {
		_ = f.rt.Wait(context.Background(), f.quit, mendPause)
		select {
		case <-f.quit:
			return // close makes the last attempt
		default:
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
