package console

import "time"

// Faster makes samples, walks through the tags and streams faster, for tests.
func Faster() {
	sampleEvery, tagsEvery, liveEvery = 300*time.Millisecond, 300*time.Millisecond, 200*time.Millisecond
	pingEvery, writeTime = 500*time.Millisecond, time.Second
}

// SetNow sets the clock of a Monitor.
func SetNow(m *Monitor, now func() time.Time) { m.now = now }

// Sample takes a sample.
func Sample(m *Monitor) { m.sample() }

// Streams returns how many streams are open.
func Streams(c *Console) int { return len(c.streams) }
