package segment

// SetDuringShut makes f run between the two halves of chunk.shut, and returns what
// takes it out again. No node may run meanwhile that f does not expect.
func SetDuringShut(f func()) (undo func()) {
	before := duringShut
	duringShut = f
	return func() { duringShut = before }
}
