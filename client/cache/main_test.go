package cache_test

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is an Issuer of dense numbers per tag. hook, if there is one, decides what a
// fetch gets.
type source struct {
	mu   sync.Mutex
	next map[string]int64
	asks []int
	hook func(ctx context.Context, tag string, n int) ([]leaf.Range, error) // nil: give
}

func newSource() *source { return &source{next: map[string]int64{}} }

func (s *source) Next(ctx context.Context, tag string) (int64, error) {
	r, err := s.NextN(ctx, tag, 1)
	if err != nil {
		return 0, err
	}
	return r[0].Lo, nil
}

func (s *source) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	s.mu.Lock()
	hook := s.hook
	s.asks = append(s.asks, n)
	s.mu.Unlock()
	if hook != nil {
		return hook(ctx, tag, n)
	}
	return s.give(tag, n), nil
}

// give reserves n IDs.
func (s *source) give(tag string, n int) []leaf.Range {
	s.mu.Lock()
	defer s.mu.Unlock()
	lo := s.next[tag] + 1
	s.next[tag] += int64(n)
	return []leaf.Range{{Lo: lo, Hi: lo + int64(n)}}
}

func (s *source) set(hook func(ctx context.Context, tag string, n int) ([]leaf.Range, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

func (s *source) asked() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int(nil), s.asks...)
}

// open returns a cache that is closed at the end of the test.
func open(t testing.TB, src leaf.Issuer, cfg cache.Config) *cache.Cache {
	t.Helper()
	c, err := cache.New(src, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func next(t testing.TB, c leaf.Issuer, tag string) int64 {
	t.Helper()
	id, err := c.Next(t.Context(), tag)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
