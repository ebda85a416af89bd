package segment_test

import (
	"context"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

// board decorates a store's board with faults. A nil hook does nothing.
type board struct {
	*store
	hooks     sync.Mutex
	onEnter   func() error
	onNotices func() error
	readLate  func() // after the notices were read
	onAnswer  func(a segment.Answer) error
	onPost    func(n segment.Notice) (lost bool)
	onRaise   func()
	notices   *memory.Store // has the notices instead of the store, if there is one
}

func (b *board) change(f func(b *board)) {
	b.hooks.Lock()
	defer b.hooks.Unlock()
	f(b)
}

func (b *board) Enter(ctx context.Context, m segment.Member) error {
	b.hooks.Lock()
	hook := b.onEnter
	b.hooks.Unlock()
	if hook != nil {
		if err := hook(); err != nil {
			return err
		}
	}
	return b.Store.Enter(ctx, m)
}

func (b *board) Notices(ctx context.Context) ([]segment.Notice, error) {
	b.hooks.Lock()
	hook, late, from := b.onNotices, b.readLate, b.notices
	b.hooks.Unlock()
	if hook != nil {
		if err := hook(); err != nil {
			return nil, err
		}
	}
	if from == nil {
		from = b.Store
	}
	all, err := from.Notices(ctx)
	if late != nil {
		late()
	}
	return all, err
}

func (b *board) Post(ctx context.Context, n segment.Notice) error {
	b.hooks.Lock()
	hook, on := b.onPost, b.notices
	b.hooks.Unlock()
	if hook != nil && hook(n) {
		return nil
	}
	if on == nil {
		on = b.Store
	}
	return on.Post(ctx, n)
}

func (b *board) Answer(ctx context.Context, a segment.Answer) error {
	b.hooks.Lock()
	hook := b.onAnswer
	b.hooks.Unlock()
	if hook != nil {
		if err := hook(a); err != nil {
			return err
		}
	}
	return b.Store.Answer(ctx, a)
}

func (b *board) Raise(ctx context.Context, tag string, above int64) (int64, error) {
	b.hooks.Lock()
	hook := b.onRaise
	b.hooks.Unlock()
	if hook != nil {
		hook()
	}
	return b.Store.Raise(ctx, tag, above)
}

// repaired returns where the last repair of the tag moved the row.
func (s *store) repaired(t testing.TB, tag string) int64 {
	t.Helper()
	all, err := s.Notices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		if n.Tag == tag {
			return n.Repaired
		}
	}
	return 0
}
