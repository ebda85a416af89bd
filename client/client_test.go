package client_test

import (
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
)

// TestDistinctOverSockets: callers of several tags share streams to two nodes that give
// from one counter; every ID is distinct.
func TestDistinctOverSockets(t *testing.T) {
	issuer := &counter{}
	a, b := startServer(t, issuer), startServer(t, issuer)
	c := newClient(t, client.Addresses(a.addr, b.addr))
	var ids ledger
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() {
			tag := []string{"order", "user", "message"}[i%3]
			for k := range 100 {
				if i%2 == 0 {
					id, err := c.Next(t.Context(), tag)
					if err != nil {
						t.Error(err)
						return
					}
					ids.add(t, leaf.Range{Lo: id, Hi: id + 1})
					continue
				}
				n := k%7 + 1
				ranges, err := c.NextN(t.Context(), tag, n)
				if err != nil {
					t.Error(err)
					return
				}
				total := int64(0)
				for _, r := range ranges {
					total += r.Len()
				}
				if total != int64(n) {
					t.Errorf("%d IDs, want %d", total, n)
				}
				ids.add(t, ranges...)
			}
		})
	}
	callers.Wait()
	// On a slow machine answers of hedges may still be on their way, or never come because
	// their stream has broken.
	missing := func() int64 { return issuer.last.Load() - c.Stats().Lost - ids.len() }
	for deadline := time.Now().Add(5 * time.Second); missing() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if s := c.Stats(); missing() < 0 || missing() > 0 && s.Hedges+s.Retries == 0 {
		t.Errorf("%d IDs received and %d lost; the nodes gave %d", ids.len(), s.Lost, issuer.last.Load())
	}
}

// ledger holds every ID that was given.
type ledger struct {
	mu  sync.Mutex
	ids map[int64]struct{}
}

func (l *ledger) add(t testing.TB, ranges ...leaf.Range) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids == nil {
		l.ids = make(map[int64]struct{})
	}
	for _, r := range ranges {
		for id := r.Lo; id < r.Hi; id++ {
			if _, twice := l.ids[id]; twice {
				t.Errorf("ID %d was given twice", id)
			}
			l.ids[id] = struct{}{}
		}
	}
}

func (l *ledger) len() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.ids))
}
