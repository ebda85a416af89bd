package proxy

import (
	"math/rand/v2"
	"time"
)

// weather is what a bad network does to each piece of bytes that it carries. A
// piece is what one read returned, at most 64 KiB.
type weather struct {
	latency time.Duration
	jitter  time.Duration
	cuts    float64 // probability
	speed   int     // bytes per second, 0 without limit
	random  *rand.Rand
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// draw decides about one piece. Pieces of a connection wait one after the other,
// so that they stay in order and the latencies limit the throughput too.
func (w *weather) draw(size int) (wait time.Duration, cut bool) {
	wait = w.latency
	if w.jitter > 0 {
		wait += time.Duration(w.random.Int64N(int64(w.jitter) + 1))
	}
	if w.speed > 0 {
		wait += time.Duration(size) * time.Second / time.Duration(w.speed)
	}
	return wait, w.cuts > 0 && w.random.Float64() < w.cuts
}

// Delay holds back all bytes by d, in each direction; 0 ends it.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather.latency = d
}

// Jitter holds back each piece of bytes by up to d more than Delay says, at
// random; 0 ends it.
func (p *Proxy) Jitter(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather.jitter = d
}

// Limit lets at most so many bytes per second pass, of each connection and in
// each direction; 0 ends it.
func (p *Proxy) Limit(bytesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather.speed = bytesPerSecond
}

// CutAtRandom loses each piece of bytes with this probability, from 0, which
// ends it, to 1, and resets its connection on both sides.
func (p *Proxy) CutAtRandom(probability float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather.cuts = probability
}

// Seed begins the sequence of random numbers anew, which is that of seed 0 at
// first. With one connection, which sends and waits for the answer in turn, the
// same seed makes the same faults; with several their order decides too.
func (p *Proxy) Seed(seed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather.random = seeded(seed)
}
