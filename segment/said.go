package segment

// say returns the mark for a repair that asks what this node holds of a tag. The repair does
// not know of a range whose reply is still on its way, and the database may have forgotten
// it: advance refuses that range.
func (f *fence) say(tag string) Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said[tag]++
	return f.marks[tag]
}

// loadStart is what a load finds when it begins.
type loadStart struct {
	Mark

	said int // how often this node had said what it holds
}

// begin returns what is known of a tag when a load begins.
func (f *fence) begin(tag string) loadStart {
	f.mu.Lock()
	defer f.mu.Unlock()
	return loadStart{f.marks[tag], f.said[tag]}
}
