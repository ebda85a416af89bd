package segment

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// retries loads ranges for tags whose last load failed, or whose callers were rejected, whether or not a
// caller waits: a node that lost its callers because it could not serve them would not find out that it
// could again, and its alarms would outlast their cause. A goroutine runs while there
// are such tags.
type retries struct {
	shard *shard

	mu      sync.Mutex
	tags    map[*Tag]struct{}
	running bool
}

const retryEvery = time.Second // less a random part, as all pauses

// add takes up a tag. t.mu is held.
func (r *retries) add(t *Tag) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tags[t] = struct{}{}
	r.running = r.running || r.shard.alloc.tasks.Start(r.run)
}

// drop forgets a tag that has a range again, or needs none. t.mu is held.
func (r *retries) drop(t *Tag) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tags, t)
}

// has reports whether a load of the tag is tried again. t.mu is held.
func (r *retries) has(t *Tag) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, found := r.tags[t]
	return found
}

// waiting reports whether there are such tags.
func (r *retries) waiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tags) > 0
}

// due returns the tags, in order; without any the caller ends.
func (r *retries) due() []*Tag {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tags) == 0 || r.shard.alloc.isClosing() {
		r.running = false
		return nil
	}
	all := make([]*Tag, 0, len(r.tags))
	for t := range r.tags {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *Tag) int { return cmp.Compare(a.name, b.name) })
	return all
}

func (r *retries) run() {
	a := r.shard.alloc
	for {
		_ = a.rt.Wait(context.Background(), a.running.Done(), a.rt.Jitter(retryEvery))
		all := r.due()
		if all == nil {
			return
		}
		for _, t := range all {
			t.mu.Lock()
			if t.state == listed {
				t.ask(t.buffer(), true)
			} else {
				r.drop(t)
			}
			t.mu.Unlock()
		}
	}
}
