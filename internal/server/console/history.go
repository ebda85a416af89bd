package console

import (
	"context"
	"sync"
	"time"
)

// sampleEvery is a variable for tests.
var sampleEvery = 5 * time.Second

const sampleCount = 720 // an hour

// Point is one sample: rates per second over the time since the one before.
type Point struct {
	At       int64    `json:"at"` // Unix seconds
	IDs      float64  `json:"ids"`
	Loads    float64  `json:"loads"`
	Failures float64  `json:"failures"`
	Waits    float64  `json:"waits"`
	Refused  float64  `json:"refused"`
	Waiting  int      `json:"waiting"`
	Offset   *float64 `json:"offset,omitempty"`
}

// Monitor keeps the samples of the last hour and the rates of the tags. All methods are
// safe for concurrent use.
type Monitor struct {
	meter Meter
	now   func() time.Time

	mu     sync.Mutex
	ring   []Point // oldest first once it is full, from next on
	next   int
	before Counters
	at     time.Time // of before; zero: none

	tags tagView
}

// NewMonitor returns a Monitor without samples.
func NewMonitor(m Meter) *Monitor {
	return &Monitor{meter: m, now: time.Now, tags: tagView{rates: map[string]rate{}}}
}

// Run takes samples until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	t := time.NewTicker(sampleEvery)
	defer t.Stop()
	for m.sample(); ; m.sample() {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (m *Monitor) sample() {
	c, now := m.meter.Counters(), m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	before, elapsed := m.before, now.Sub(m.at).Seconds()
	first := m.at.IsZero()
	m.before, m.at = c, now
	if first || elapsed <= 0 {
		return
	}
	per := func(a, b int64) float64 { return float64(max(0, a-b)) / elapsed }
	p := Point{
		At: now.Unix(), IDs: per(c.Issued, before.Issued), Loads: per(c.Loads, before.Loads), Failures: per(c.Failures, before.Failures),
		Waits: per(c.Waits, before.Waits), Refused: per(c.Refused, before.Refused), Waiting: c.Waiting, Offset: c.Offset,
	}
	if len(m.ring) < sampleCount {
		m.ring = append(m.ring, p)
		return
	}
	m.ring[m.next] = p
	m.next = (m.next + 1) % sampleCount
}

// History returns the samples, oldest first.
func (m *Monitor) History() []Point {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]Point, 0, len(m.ring))
	return append(append(all, m.ring[m.next:]...), m.ring[:m.next]...)
}

// last returns the newest sample, nil without one.
func (m *Monitor) last() *Point {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ring) == 0 {
		return nil
	}
	p := m.ring[(m.next+len(m.ring)-1)%len(m.ring)]
	return &p
}
