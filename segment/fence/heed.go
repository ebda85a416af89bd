package fence

import "github.com/leaf-idgen/leaf"

// Look says what had happened on this node when it began to look at what other nodes posted,
// or, for a repair that it carries out itself (Own), when it began to ask.
type Look struct {
	Own bool

	number  int // of the look
	repairs int // that this node had carried out
}

// Look begins a look.
func (f *Fence) Look() Look {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	return Look{number: f.looks, repairs: f.repairs}
}

// Heed sets the tag's mark, in memory, to what rule makes of it, and begins or ends the
// alarm why; Settle makes the mark durable. late tells rule that a range of the tag was
// refused after the look began. ok is false, and nothing is changed, if this node has
// carried out a repair since the look began: what was read is perhaps from before it.
// rule is called under the lock of the fence.
func (f *Fence) Heed(tag string, began Look, rule func(m Mark, late bool) Mark, why leaf.Alarm) (after Mark, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.marks[tag]
	switch {
	case began.Own:
		f.repairs++
	case began.repairs != f.repairs:
		return before, false
	}
	late := f.refused[tag] >= began.number
	if after = rule(before, late); after == before || f.closed {
		return before, true
	}
	switch {
	case after.Latched && !before.Latched:
		f.cfg.Alarms.Raise(why)
	case before.Latched && !after.Latched:
		f.cfg.Alarms.Clear(leaf.AlarmRegress, tag)
	}
	if _, heard := f.own[tag]; after.High > before.High && !heard {
		f.own[tag] = before.ranges()
	}
	f.setLocked(tag, after)
	f.loose = append(f.loose, entryOf(tag, after))
	return after, true
}

// Settle returns when every mark that was set before is durable.
func (f *Fence) Settle() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return errClosed
	}
	if len(f.loose) == 0 && !f.broken {
		select {
		case <-f.last:
			f.mu.Unlock()
			return nil
		default:
		}
	}
	return f.commit()
}
