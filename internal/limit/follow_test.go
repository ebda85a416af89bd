package limit_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/segment"
)

// source is a store that can fail or hang.
type source struct {
	*memory.Store
	mu    sync.Mutex
	fault error  // errHang: it hangs until its context ends
	once  func() // is called by the next reading; nil: nothing is
	reads int
}

var errHang = errors.New("hangs")

func newSource(tags ...string) *source {
	s := &source{Store: memory.New()}
	for _, tag := range tags {
		s.Put(segment.Row{Tag: tag, Step: 1})
	}
	return s
}

func (s *source) Limits(ctx context.Context) (limit.Rules, error) {
	s.mu.Lock()
	s.reads++
	fault, once := s.fault, s.once
	s.once = nil
	s.mu.Unlock()
	if once != nil {
		once()
	}
	switch {
	case errors.Is(fault, errHang):
		<-ctx.Done()
		return limit.Rules{}, ctx.Err()
	case fault != nil:
		return limit.Rules{}, fault
	}
	return s.Store.Limits(ctx)
}

func (s *source) breakDown(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
}

// follow runs a follower until the test ends, and returns what is in force, as
// "tag a 5, client x 6".
func follow(t *testing.T, log *bytes.Buffer, sources ...limit.Source) (f *limit.Follower, inForce func() string) {
	t.Helper()
	g := newGate(t, limit.Config{}, new(engine), new(engine))
	c := limit.FollowConfig{}
	if log != nil {
		c.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	f = limit.NewFollower(g, sources, c)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	synctest.Wait()
	return f, func() string {
		var all []string
		for _, r := range g.Rules() {
			kind := "tag "
			if r.Client {
				kind = "client "
			}
			all = append(all, kind+r.Name)
		}
		return strings.Join(all, ", ")
	}
}

func second[T any](_ T, err error) error { return err }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var some = limit.Rule{Rate: 5}

func TestFollow(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		a, b := newSource("a", "both"), newSource("b", "both")
		must(t, second(a.SetTagLimit(t.Context(), "a", limit.ChangeTo(some))))
		must(t, second(b.SetTagLimit(t.Context(), "b", limit.ChangeTo(some))))
		must(t, second(b.SetTagLimit(t.Context(), "both", limit.ChangeTo(some))))
		must(t, second(a.SetClientLimit(t.Context(), "x", limit.ChangeTo(some))))
		must(t, second(b.SetClientLimit(t.Context(), "y", limit.ChangeTo(some))))
		f, inForce := follow(t, nil,
			limit.Source{Name: "a", Store: a, Holds: func(tag string) bool { return tag != "b" }},
			limit.Source{Name: "b", Store: b, Holds: func(tag string) bool { return tag == "b" }})
		expect := func(when, want string) {
			t.Helper()
			if got := inForce(); got != want {
				t.Errorf("%s %q is in force, want %q", when, got, want)
			}
		}
		expect("at the start", "tag a, tag b, client x")
		must(t, second(a.SetTagLimit(t.Context(), "both", limit.ChangeTo(some))))
		must(t, second(a.SetTagLimit(t.Context(), "a", limit.ChangeTo(limit.Rule{}))))
		must(t, second(b.SetClientLimit(t.Context(), "z", limit.ChangeTo(some))))
		expect("before the next reading", "tag a, tag b, client x")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		expect("after the interval", "tag b, tag both, client x")
		must(t, second(b.SetTagLimit(t.Context(), "b", limit.ChangeTo(limit.Rule{}))))
		must(t, f.Refresh(t.Context()))
		expect("after Refresh", "tag both, client x")
		if a.reads > 4 {
			t.Errorf("%d readings in 2 s", a.reads)
		}
	})
}

// TestFollowThroughAnOutage: the last rules stay, the others are still followed, and the
// log has one line for the beginning and one for the end.
func TestFollowThroughAnOutage(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{errors.New("connection refused"), errHang} {
		bubble(t, func(t *testing.T) {
			a, b := newSource("a"), newSource("b")
			must(t, second(a.SetTagLimit(t.Context(), "a", limit.ChangeTo(some))))
			must(t, second(a.SetClientLimit(t.Context(), "x", limit.ChangeTo(some))))
			var log bytes.Buffer
			f, inForce := follow(t, &log, limit.Source{Name: "first", Store: a}, limit.Source{Name: "second", Store: b})
			a.breakDown(fault)
			must(t, second(b.SetTagLimit(t.Context(), "b", limit.ChangeTo(some))))
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if got, want := inForce(), "tag a, tag b, client x"; got != want {
				t.Errorf("in the outage %q is in force, want %q", got, want)
			}
			if err := f.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "read limits from first") {
				t.Errorf("Refresh in the outage: %v", err)
			}
			a.breakDown(nil)
			must(t, second(a.SetTagLimit(t.Context(), "a", limit.ChangeTo(limit.Rule{}))))
			time.Sleep(5 * time.Second)
			synctest.Wait() // for a reading at this very moment
			if got, want := inForce(), "tag b, client x"; got != want {
				t.Errorf("after the outage %q is in force, want %q", got, want)
			}
			var lines []string
			for line := range strings.Lines(log.String()) {
				_, line, _ = strings.Cut(line, "level=")
				line, _, _ = strings.Cut(line, " error=")
				lines = append(lines, strings.TrimSpace(line))
			}
			want := []string{`WARN msg="limits cannot be read; the last ones stay in force" store=first`, `INFO msg="limits can be read again" store=first`}
			if diff := gocmp.Diff(want, lines); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadingThatDoesNotReturn: a reading that hangs whatever its context says, or panics, keeps the rules that are changed
// later from no node.
func TestReadingThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(end <-chan struct{}){
		"hangs":  func(end <-chan struct{}) { <-end },
		"panics": func(<-chan struct{}) { panic("planted") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				s := newSource("a")
				var log bytes.Buffer
				_, inForce := follow(t, &log, limit.Source{Name: "s", Store: s})
				end := make(chan struct{})
				defer close(end)
				s.mu.Lock()
				s.once = func() { fault(end) }
				s.mu.Unlock()
				must(t, second(s.SetTagLimit(t.Context(), "a", limit.ChangeTo(some))))
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if got := inForce(); got != "tag a" {
					t.Errorf("%q is in force", got)
				}
				if said := log.String(); strings.Count(said, "limits cannot be read;") != 1 || strings.Count(said, "limits can be read again") != 1 {
					t.Errorf("the log says %s", said)
				}
			})
		})
	}
}

// TestFollowEnds at once, also while a store hangs, and says nothing about it.
func TestFollowEnds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		s := newSource()
		s.breakDown(errHang)
		var log bytes.Buffer
		f := limit.NewFollower(newGate(t, limit.Config{}, new(engine), new(engine)), []limit.Source{{Name: "s", Store: s}},
			limit.FollowConfig{Logger: slog.New(slog.NewTextHandler(&log, nil)), Timeout: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { f.Run(ctx); close(ended) }()
		synctest.Wait()
		// A second reading waits for the first one, for as long as its caller wants.
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := f.Refresh(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Refresh beside a reading that hangs: %v", err)
		}
		begin := time.Now()
		cancel()
		<-ended
		if took := time.Since(begin); took != 0 || log.Len() != 0 {
			t.Errorf("it ended after %v and said %q", took, log.String())
		}
	})
	limit.NewFollower(newGate(t, limit.Config{}, new(engine), new(engine)), nil, limit.FollowConfig{}).Run(t.Context()) // without a source there is nothing to do
}
