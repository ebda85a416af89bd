package memory

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"github.com/leaf-idgen/leaf/segment/fence"
)

// Fence is a fence.Cluster in memory, shared by all nodes that are given the
// same one. Use NewFence. All methods are safe for concurrent use and never block.
type Fence struct {
	mu      sync.Mutex
	space   string                 // "": no namespace
	id      string                 // of the cluster; "": none
	entries map[string]fence.Entry // versions count from 0 per tag and incarnation, as ZooKeeper's do
}

var _ fence.Cluster = (*Fence)(nil)

// NewFence returns a fence without a namespace.
func NewFence() *Fence { return &Fence{} }

// Wipe deletes the namespace with everything in it, as an administrator may do to a real
// store.
func (f *Fence) Wipe() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.space, f.id, f.entries = "", "", nil
}

// Open implements fence.Cluster.
func (f *Fence) Open(ctx context.Context) (space string, created bool, err error) {
	if err := ctx.Err(); err != nil {
		return "", false, fmt.Errorf("open the fence: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.space == "" {
		f.space, f.entries, created = rand.Text(), map[string]fence.Entry{}, true
	}
	return f.space, created, nil
}

// Identify implements fence.Cluster.
func (f *Fence) Identify(ctx context.Context, space, id string) (found string, err error) {
	err = f.with(ctx, space, "id", 0, func() error {
		if f.id == "" {
			f.id = id
		}
		found = f.id
		return nil
	})
	return found, err
}

// Read implements fence.Cluster.
func (f *Fence) Read(ctx context.Context, space, tag string) (e fence.Entry, ok bool, err error) {
	err = f.with(ctx, space, tag, 0, func() error {
		e, ok = f.entries[tag]
		return nil
	})
	return e, ok, err
}

// Swap implements fence.Cluster.
func (f *Fence) Swap(ctx context.Context, space, tag string, old *fence.Entry, end int64) (e fence.Entry, err error) {
	err = f.with(ctx, space, tag, end, func() error {
		now, ok := f.entries[tag]
		if ok != (old != nil) || ok && now != *old {
			return fence.ErrMoved
		}
		if e = (fence.Entry{End: end}); ok {
			e.Version = now.Version + 1
		}
		f.entries[tag] = e
		return nil
	})
	return e, err
}

// with runs do under the lock if the namespace is space.
func (f *Fence) with(ctx context.Context, space, tag string, end int64, do func() error) error {
	if err := fence.CheckEntry(tag, end); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("fence of tag %q: %w", tag, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if space == "" || f.space != space {
		return fmt.Errorf("fence of tag %q: %w", tag, fence.ErrReplaced)
	}
	if err := do(); err != nil {
		return fmt.Errorf("fence of tag %q: %w", tag, err)
	}
	return nil
}
