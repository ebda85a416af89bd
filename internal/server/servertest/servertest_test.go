package servertest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDirect: what keeps the promises passes.
func TestDirect(t *testing.T) {
	t.Parallel()
	servertest.Options{StartAs: direct{}.startAs, StartFormats: formatting{}.start}.Run(t, direct{}.start)
}

// TestBroken: each fault is seen, and by the cases that are about it and no others.
func TestBroken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault string
		make  func() direct
		seen  []string
	}{
		{"none", func() direct { return direct{} }, nil},
		{"IDs pass through a float64", func() direct {
			return direct{reply: each(func(r leaf.Range) leaf.Range {
				n := r.Len()
				lo := int64(float64(r.Lo))
				return leaf.Range{Lo: lo, Hi: lo + n}
			})}
		}, []string{"one ID", "a batch in one range", "a batch in several ranges"}},
		{"IDs of 32 bits", func() direct {
			return direct{reply: each(func(r leaf.Range) leaf.Range {
				return leaf.Range{Lo: r.Lo & math.MaxUint32, Hi: r.Lo&math.MaxUint32 + r.Len()}
			})}
		}, []string{"one ID", "a batch in one range", "a batch in several ranges"}},
		{"only the first range", func() direct {
			return direct{reply: func(r []leaf.Range) []leaf.Range { return r[:1] }}
		}, []string{"a batch in several ranges"}},
		{"ranges in another order", func() direct {
			return direct{reply: func(r []leaf.Range) []leaf.Range {
				r = slices.Clone(r)
				slices.Reverse(r)
				return r
			}}
		}, []string{"a batch in several ranges"}},
		{"ranges closed at both ends", func() direct {
			return direct{reply: each(func(r leaf.Range) leaf.Range { return leaf.Range{Lo: r.Lo, Hi: r.Hi - 1} })}
		}, []string{"one ID", "a batch in one range", "a batch in several ranges", "a panic", "many callers", "tags are exact"}},
		{"a batch is asked for one too many", func() direct {
			return direct{count: func(n int) int {
				if n > 1 {
					n++
				}
				return n
			}}
		}, []string{"a batch in one range", "a batch in several ranges", "a panic", "many callers"}},
		{"one reply twice", func() direct {
			var mu sync.Mutex
			var last []leaf.Range
			calls := 0
			return direct{reply: func(r []leaf.Range) []leaf.Range {
				mu.Lock()
				defer mu.Unlock()
				if calls++; calls == 100 {
					return last
				}
				last = r
				return r
			}}
		}, []string{"many callers"}},
		{"spaces are trimmed", func() direct { return direct{tag: strings.TrimSpace} }, []string{"tags are exact"}},
		{"tags in lower case", func() direct { return direct{tag: strings.ToLower} }, []string{"tags are exact"}},
		{"any tag", func() direct {
			return direct{check: func(_ string, n int) error { return valid("x", n) }}
		}, []string{"a tag that is not UTF-8", "a wrong tag"}},
		{"any count", func() direct {
			return direct{check: func(tag string, _ int) error { return leaf.ValidateTag(tag) }}
		}, []string{"a count of zero", "a wrong count"}},
		{"a bad request that names nothing", func() direct {
			return direct{check: func(tag string, n int) error {
				if valid(tag, n) != nil {
					return leaf.ErrBadRequest
				}
				return nil
			}}
		}, []string{"a tag that is not UTF-8", "a wrong count", "a wrong tag"}},
		{"all errors are the same", func() direct {
			return direct{fail: func(error) error { return leaf.ErrNotReady }}
		}, []string{"a count of zero", "a mode that is off", "a panic", "a tag that is not UTF-8", "a wrong count", "a wrong tag", "an internal error", "credentials", "every class of error", "not authenticated", "the retry hint"}},
		{"an error's text is lost", func() direct {
			return direct{fail: func(err error) error {
				if c := leaf.ClassOf(err); c.Err != nil && leaf.RetryAfter(err) == 0 && !errors.Is(err, leaf.ErrBadRequest) {
					return fmt.Errorf("segment snowflake: %w", c.Err)
				}
				return outside(err)
			}}
		}, []string{"every class of error"}},
		{"the hint is lost", func() direct {
			return direct{fail: func(err error) error {
				if leaf.RetryAfter(err) > 0 {
					return fmt.Errorf("%w: %s", leaf.ErrThrottled, err.Error())
				}
				return outside(err)
			}}
		}, []string{"the retry hint"}},
		{"the hint is in whole seconds", func() direct {
			return direct{fail: func(err error) error {
				if d := leaf.RetryAfter(err); d > 0 {
					return leaf.Throttled(err.Error(), d.Truncate(time.Second))
				}
				return outside(err)
			}}
		}, []string{"the retry hint"}},
		{"causes leak", func() direct { return direct{fail: func(err error) error { return err }} }, []string{"a panic", "an internal error"}},
		{"a panic ends the connection", func() direct {
			dead := false
			return direct{serve: func(ask func() error) (err error) {
				if dead {
					return errDied
				}
				defer func() {
					if p := recover(); p != nil {
						dead, err = true, errDied
					}
				}()
				return ask()
			}}
		}, []string{"a panic"}},
		{"the modes are mixed up", func() direct {
			return direct{mode: func(i *leaf.Issuers, _ int) leaf.Issuer { return i.Segment }}
		}, []string{"a batch in one range", "a batch in several ranges", "a mode that is off", "a panic", "one ID", "tags are exact"}},
		{"every client is trusted", func() direct {
			return direct{open: func(d *direct) (*leaf.Issuers, error) {
				return d.access.Open(leaf.Credentials{Token: "open sesame"})
			}}
		}, []string{"credentials", "not authenticated"}},
		{"credentials stay at home", func() direct {
			return direct{open: func(d *direct) (*leaf.Issuers, error) { return d.access.Open(leaf.Credentials{}) }}
		}, []string{"credentials"}},
		{"the deadline is ignored", func() direct {
			return direct{ctx: func(context.Context) context.Context { return context.Background() }}
		}, []string{"the caller's deadline"}},
		{"the deadline is an internal error", func() direct {
			return direct{fail: func(err error) error {
				if leaf.ClassOf(err).Err == nil {
					return errors.New("leaf: internal error")
				}
				return err
			}}
		}, []string{"the caller's deadline"}},
		{"the deadline stays at home", func() direct {
			return direct{serve: func(ask func() error) error {
				result := make(chan error, 1)
				go func() { result <- guard(ask) }()
				select {
				case err := <-result:
					return err
				case <-time.After(500 * time.Millisecond): // of a client; the issuer waits on
					return context.DeadlineExceeded
				}
			}, ctx: context.WithoutCancel}
		}, []string{"the caller's deadline"}},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			var seen []string
			for _, name := range servertest.Cases() {
				d := tt.make()
				if failures := record(t, func(tb testing.TB) {
					servertest.RunCase(tb, name, servertest.Options{StartAs: d.startAs}, d.start)
				}); len(failures) > 0 {
					t.Logf("%s: %s", name, failures[0])
					seen = append(seen, name)
				}
			}
			slices.Sort(seen)
			slices.Sort(tt.seen)
			if diff := cmp.Diff(tt.seen, seen); diff != "" {
				t.Errorf("cases that see it (-want +got):\n%s", diff)
			}
		})
	}
}

func each(f func(leaf.Range) leaf.Range) func([]leaf.Range) []leaf.Range {
	return func(ranges []leaf.Range) (out []leaf.Range) {
		for _, r := range ranges {
			out = append(out, f(r))
		}
		return out
	}
}

// record runs f with a testing.TB of its own and returns what it complains of.
func record(t *testing.T, f func(tb testing.TB)) []string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.cleanUp()
		f(r)
	}()
	<-done
	return r.failures
}

// recorder is a testing.TB that notes failures instead of failing.
type recorder struct {
	testing.TB

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(stop{})
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Helper() {}

// stop is how Fatalf ends a case.
type stop struct{}

func (r *recorder) cleanUp() {
	if p := recover(); p != nil {
		if _, ok := p.(stop); !ok {
			panic(p)
		}
	}
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}
