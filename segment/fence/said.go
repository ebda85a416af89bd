package fence

// Say returns the mark to tell a repair that asks what this node holds of a tag. A range
// whose reply is still on its way is not in the mark, and the database may have forgotten the
// range, so Admit refuses it afterwards.
func (f *Fence) Say(tag string) Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said[tag]++
	return f.knownLocked(tag)
}

// Known returns what Say returns. The caller must not tell it to a repair.
func (f *Fence) Known(tag string) Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.knownLocked(tag)
}

// knownLocked returns the mark, raised to the end of unused IDs whose return may still reach
// the database. A repair moves the row above that end, so the late statement never finds the
// row at the same end again. The caller holds f.mu.
func (f *Fence) knownLocked(tag string) Mark {
	m := f.marks[tag]
	m.High = max(m.High, f.returning[tag])
	return m
}
