package fence

// Say returns the mark for a repair that asks what this node holds of a tag. The repair does
// not know of a range whose reply is still on its way, and the database may have forgotten
// it: advance refuses that range.
func (f *Fence) Say(tag string) Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said[tag]++
	return f.knownLocked(tag)
}

// Known is Say for a caller that tells nobody.
func (f *Fence) Known(tag string) Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.knownLocked(tag)
}

// knownLocked returns the mark, with the end of a tail whose return may still reach the
// database: a repair moves the row above that end, so the statement never meets a row that
// has come to the same end again. f.mu is held.
func (f *Fence) knownLocked(tag string) Mark {
	m := f.marks[tag]
	m.High = max(m.High, f.returning[tag])
	return m
}
