package bounded

import (
	"context"
	"sync"

	"github.com/leaf-idgen/leaf"
)

// Queue hands items to a function that may block, in order: nothing else waits for it. The
// goroutine that calls the function ends when there is nothing to hand on. Do not change the fields
// after the first Add. All methods are safe for concurrent use.
type Queue[T any] struct {
	Runtime leaf.Runtime
	Max     int // how many items may wait; those beyond are dropped and counted

	// Write takes an item. dropped is how many items before it, or before the one before, were dropped. A
	// panic drops the item.
	Write func(item T, dropped int)

	mu      sync.Mutex
	items   []T
	dropped int
	idle    chan struct{} // closed when the goroutine ends; nil: none runs
}

// Add queues an item. It does not block, and may be called with any lock held.
func (q *Queue[T]) Add(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) >= q.Max {
		q.dropped++
		return
	}
	q.items = append(q.items, item)
	if q.idle == nil {
		idle := make(chan struct{})
		q.idle = idle
		q.Runtime.Go(func() {
			defer close(idle)
			q.drain()
		})
	}
}

// drain hands one item after the other on.
func (q *Queue[T]) drain() {
	for {
		q.mu.Lock()
		if len(q.items) == 0 {
			q.idle = nil
			q.mu.Unlock()
			return
		}
		item, dropped := q.items[0], q.dropped
		q.items, q.dropped = q.items[1:], 0
		q.mu.Unlock()
		_, err := Recover("write", func() (struct{}, error) { q.Write(item, dropped); return struct{}{}, nil })
		if err != nil {
			q.mu.Lock()
			q.dropped += dropped + 1
			q.mu.Unlock()
		}
	}
}

// Flush returns when all items are handed on, or the error of ctx when it ends.
func (q *Queue[T]) Flush(ctx context.Context) error {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return nil
	}
	return q.Runtime.Wait(ctx, idle, 0)
}
