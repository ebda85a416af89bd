package cli

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// tally counts what the clients see.
type tally struct {
	ids      atomic.Int64
	answered histogram // requests that yielded IDs
	failed   histogram
	nodes    []nodeTally
	targets  []atomic.Uint64 // requests that yielded IDs

	mu    sync.Mutex
	kinds map[string]uint64 // of errors
}

type nodeTally struct{ answered, failed atomic.Uint64 }

// maxKinds is how many kinds of errors are told apart: their names come from outside.
const maxKinds = 64

func newTally(nodes, targets int) *tally {
	return &tally{nodes: make([]nodeTally, nodes), targets: make([]atomic.Uint64, targets), kinds: map[string]uint64{}}
}

// answer counts a request that yielded n IDs, and returns how many there are in total.
func (t *tally) answer(node, target int, took time.Duration, n int) int64 {
	t.answered.add(took)
	t.nodes[node].answered.Add(1)
	t.targets[target].Add(1)
	return t.ids.Add(int64(n))
}

func (t *tally) fail(node int, took time.Duration, err error) {
	t.failed.add(took)
	t.nodes[node].failed.Add(1)
	kind := err.Error()
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.kinds[kind]; !known && len(t.kinds) >= maxKinds {
		kind = "other"
	}
	t.kinds[kind]++
}

// snapshot is a tally at one moment.
type snapshot struct {
	at               time.Time
	ids              int64
	answered, failed counts
}

func (t *tally) snapshot() snapshot {
	return snapshot{time.Now(), t.ids.Load(), t.answered.counts(), t.failed.counts()}
}

// line is what happened since old, for the eye.
func (s snapshot) line(old snapshot, elapsed time.Duration) string {
	seconds := s.at.Sub(old.at).Seconds()
	ok, bad := s.answered.since(old.answered), s.failed.since(old.failed)
	return fmt.Sprintf("%5.0f s %9.0f requests/s %10.0f IDs/s %6d errors   p50 %s  p99 %s  p99.9 %s  max %s",
		elapsed.Seconds(), float64(ok.total+bad.total)/seconds, float64(s.ids-old.ids)/seconds, bad.total,
		latencyText(ok.quantile(0.5)), latencyText(ok.quantile(0.99)), latencyText(ok.quantile(0.999)), latencyText(ok.max))
}

// latencyText shows a duration with three digits or so.
func latencyText(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= 100*time.Millisecond:
		return fmt.Sprintf("%.0f ms", float64(d)/1e6)
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.2f ms", float64(d)/1e6)
}
