package discovery_test

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

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/memory"
)

// faulty is a directory in memory whose calls a test decides about, and notes.
type faulty struct {
	*memory.Directory

	mu     sync.Mutex
	before func(ctx context.Context, call string) error // nil: the call goes through
	calls  []call
}

type call struct {
	name   string
	weight int
	at     time.Time
}

var errDown = errors.New("the registry is down")

func (f *faulty) note(ctx context.Context, name string, weight int) error {
	f.mu.Lock()
	f.calls = append(f.calls, call{name, weight, time.Now()})
	before := f.before
	f.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(ctx, name)
}

func (f *faulty) Put(ctx context.Context, n discovery.Node, ttl time.Duration) error {
	if err := f.note(ctx, "put", n.Weight); err != nil {
		return err
	}
	return f.Directory.Put(ctx, n, ttl)
}

func (f *faulty) Remove(ctx context.Context, id string) error {
	if err := f.note(ctx, "remove", 0); err != nil {
		return err
	}
	return f.Directory.Remove(ctx, id)
}

func (f *faulty) set(before func(ctx context.Context, call string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

// made returns the calls so far.
func (f *faulty) made(name string) (calls []call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.name == name {
			calls = append(calls, c)
		}
	}
	return calls
}

// weight returns that of the only node that is listed, -1 if there is none.
func (f *faulty) weight(t *testing.T) int {
	t.Helper()
	nodes, err := f.Open().List(t.Context())
	if err != nil || len(nodes) > 1 {
		t.Fatalf("List = %+v, %v", nodes, err)
	}
	if len(nodes) == 0 {
		return -1
	}
	return nodes[0].Weight
}

func down(context.Context, string) error { return errDown }

// hangs lets a call wait for its deadline.
func hangs(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }

const ttl = 12 * time.Second

// announced runs test in a bubble, with an announcer that was started and closed at the end.
func announced(t *testing.T, test func(t *testing.T, f *faulty, a *discovery.Announcer, log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := &faulty{Directory: memory.NewDirectory(nil)}
		a, err := discovery.NewAnnouncer(f, valid(), discovery.Config{TTL: ttl, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		test(t, f, a, &log)
	})
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestAnnounce(t *testing.T) {
	announced(t, func(t *testing.T, f *faulty, a *discovery.Announcer, log *bytes.Buffer) {
		if got := f.weight(t); got != -1 {
			t.Errorf("weight %d before Start", got)
		}
		start := time.Now()
		a.Start()
		a.Start()
		synctest.Wait()
		if got := f.weight(t); got != 100 {
			t.Errorf("weight %d after Start, want 100 at once", got)
		}
		for time.Since(start) < 10*time.Minute {
			time.Sleep(ttl / 10)
			synctest.Wait()
			if got := f.weight(t); got != 100 {
				t.Fatalf("weight %d after %v: it must be listed all the time", got, time.Since(start))
			}
		}
		puts := f.made("put")
		for i, p := range puts[1:] {
			if gap := p.at.Sub(puts[i].at); gap < ttl/6 || gap > ttl/3 {
				t.Errorf("put %d came %v after the one before, want %v to %v", i+1, gap, ttl/6, ttl/3)
			}
		}
		if s := a.Status(); s.Err != nil || time.Since(s.Published) > ttl/3 || s.Withdrawn || s.Node != valid() {
			t.Errorf("Status = %+v", s)
		}
		a.Close()
		made := len(f.made("put"))
		time.Sleep(ttl)
		if got := f.weight(t); got != -1 || len(f.made("put")) != made || len(f.made("remove")) != 0 {
			t.Errorf("after Close: weight %d, %d puts and %d removals; Close leaves the entry to its time", got, len(f.made("put"))-made, len(f.made("remove")))
		}
		if log.Len() > 0 {
			t.Errorf("log without an outage: %s", log)
		}
	})
}

// TestAnnounceOutage: it is tried again, slower and slower, with one warning.
func TestAnnounceOutage(t *testing.T) {
	announced(t, func(t *testing.T, f *faulty, a *discovery.Announcer, log *bytes.Buffer) {
		for outage := 1; outage <= 2; outage++ {
			f.set(down)
			a.Start()
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			if got := f.weight(t); got != -1 {
				t.Fatalf("weight %d in the outage", got)
			}
			if s := a.Status(); !errors.Is(s.Err, errDown) {
				t.Errorf("Status = %+v", s)
			}
			before := len(f.made("put"))
			f.set(nil)
			time.Sleep(ttl / 3)
			synctest.Wait()
			if got := f.weight(t); got != 100 || len(f.made("put")) == before {
				t.Errorf("weight %d after the outage", got)
			}
			if warned, over := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "published in the directory of nodes again"); warned != outage || over != outage {
				t.Errorf("%d warnings and %d ends after %d outages:\n%s", warned, over, outage, log)
			}
		}
		puts := f.made("put")
		if early := puts[3].at.Sub(puts[0].at); early > 3*time.Second {
			t.Errorf("the first three retries took %v", early)
		}
		if n := len(puts); n < 140 || n > 320 {
			t.Errorf("%d puts in 10 minutes", n)
		}
	})
}

// TestAnnounceHung: a call that hangs does not keep the next one away.
func TestAnnounceHung(t *testing.T) {
	announced(t, func(t *testing.T, f *faulty, a *discovery.Announcer, _ *bytes.Buffer) {
		f.set(hangs)
		a.Start()
		time.Sleep(time.Minute)
		f.set(nil)
		time.Sleep(2*time.Second + ttl/3)
		synctest.Wait()
		if got := f.weight(t); got != 100 {
			t.Errorf("weight %d after the outage", got)
		}
	})
}

func TestSetWeight(t *testing.T) {
	announced(t, func(t *testing.T, f *faulty, a *discovery.Announcer, _ *bytes.Buffer) {
		a.Start()
		synctest.Wait()
		start := time.Now()
		for _, w := range []int{0, 1000, 1000, 7} {
			if err := a.SetWeight(t.Context(), w); err != nil {
				t.Fatalf("SetWeight(%d): %v", w, err)
			}
			if got := f.weight(t); got != w || time.Since(start) != 0 {
				t.Errorf("weight %d after SetWeight(%d) and %v", got, w, time.Since(start))
			}
		}
		for _, w := range []int{-1, 1001} {
			if err := a.SetWeight(t.Context(), w); !errors.Is(err, leaf.ErrBadRequest) {
				t.Errorf("SetWeight(%d): %v", w, err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := f.weight(t); got != 7 {
			t.Errorf("weight %d after a minute, want 7", got)
		}
		// During an outage it is remembered.
		f.set(down)
		if err := a.SetWeight(within(t, 5*time.Second), 9); !errors.Is(err, leaf.ErrNotReady) || !errors.Is(err, errDown) {
			t.Errorf("SetWeight in an outage: %v; want ErrNotReady with the reason", err)
		}
		f.set(nil)
		time.Sleep(ttl)
		synctest.Wait()
		if got := f.weight(t); got != 9 {
			t.Errorf("weight %d after the outage, want 9", got)
		}
		// A change while a call carries the old weight needs another call.
		release := make(chan struct{})
		f.set(func(context.Context, string) error { <-release; return nil })
		done := make(chan error, 2)
		go func() { done <- a.SetWeight(within(t, time.Minute), 10) }()
		synctest.Wait()
		go func() { done <- a.SetWeight(within(t, time.Minute), 11) }()
		synctest.Wait()
		close(release)
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
		if got := f.weight(t); got != 11 {
			t.Errorf("weight %d, want 11", got)
		}
	})
}

// TestWithdraw: whatever is under way, the entry is gone for good.
func TestWithdraw(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, f *faulty, a *discovery.Announcer)
		took    time.Duration // at most
	}{
		{"at rest", func(*testing.T, *faulty, *discovery.Announcer) { time.Sleep(time.Second) }, 0},
		{"a Put under way that succeeds", func(t *testing.T, f *faulty, a *discovery.Announcer) {
			release := make(chan struct{})
			f.set(func(_ context.Context, call string) error {
				if call == "put" {
					<-release
				}
				return nil
			})
			go func() { _ = a.SetWeight(t.Context(), 5) }()
			synctest.Wait()
			time.AfterFunc(time.Second, func() { close(release) })
		}, time.Second},
		{"a Put under way that fails and takes effect later", func(t *testing.T, f *faulty, a *discovery.Announcer) {
			d := f.Open()
			f.set(func(ctx context.Context, call string) error {
				if call != "put" {
					return nil
				}
				<-ctx.Done()
				time.AfterFunc(1500*time.Millisecond, func() { _ = d.Put(context.Background(), valid(), ttl) })
				return ctx.Err()
			})
			go func() { _ = a.SetWeight(t.Context(), 5) }()
			synctest.Wait()
		}, 5 * time.Second},
		{"the directory is down for a while", func(t *testing.T, f *faulty, _ *discovery.Announcer) {
			f.set(down)
			time.AfterFunc(4*time.Second, func() { f.set(nil) })
		}, 6 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			announced(t, func(t *testing.T, f *faulty, a *discovery.Announcer, _ *bytes.Buffer) {
				a.Start()
				synctest.Wait()
				tt.prepare(t, f, a)
				start := time.Now()
				for range 2 {
					if err := a.Withdraw(within(t, 20*time.Second)); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(start); took > tt.took {
					t.Errorf("Withdraw took %v, want at most %v", took, tt.took)
				}
				synctest.Wait()
				puts := len(f.made("put"))
				for range 100 {
					if got := f.weight(t); got != -1 {
						t.Fatalf("listed with weight %d, %v after Withdraw", got, time.Since(start))
					}
					time.Sleep(200 * time.Millisecond)
				}
				if err := a.SetWeight(t.Context(), 1); !errors.Is(err, leaf.ErrConflict) {
					t.Errorf("SetWeight after Withdraw: %v", err)
				}
				a.Start()
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := len(f.made("put")); n != puts || f.weight(t) != -1 || !a.Status().Withdrawn {
					t.Errorf("%d puts after Withdraw; Status %+v", n-puts, a.Status())
				}
			})
		})
	}
}

// TestWithdrawInVain: it ends with its context and says what that means.
func TestWithdrawInVain(t *testing.T) {
	for name, fault := range map[string]func(context.Context, string) error{"down": down, "hangs": hangs} {
		t.Run(name, func(t *testing.T) {
			announced(t, func(t *testing.T, f *faulty, a *discovery.Announcer, _ *bytes.Buffer) {
				a.Start()
				synctest.Wait()
				f.set(fault)
				start := time.Now()
				err := a.Withdraw(within(t, 3*time.Second))
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "may be listed for up to 12s") {
					t.Errorf("Withdraw: %v", err)
				}
				if took := time.Since(start); took != 3*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
	t.Run("a SetWeight that waits is told", func(t *testing.T) {
		announced(t, func(t *testing.T, f *faulty, a *discovery.Announcer, _ *bytes.Buffer) {
			f.set(down)
			a.Start()
			told := make(chan error)
			go func() { told <- a.SetWeight(t.Context(), 5) }()
			synctest.Wait()
			a.Close()
			if err := <-told; !errors.Is(err, leaf.ErrConflict) {
				t.Errorf("SetWeight: %v", err)
			}
		})
	})
	t.Run("never published", func(t *testing.T) {
		announced(t, func(t *testing.T, f *faulty, a *discovery.Announcer, _ *bytes.Buffer) {
			f.set(down)
			a.Start()
			time.Sleep(time.Minute)
			start := time.Now()
			if err := a.Withdraw(t.Context()); !errors.Is(err, errDown) || len(f.made("remove")) > 2 || time.Since(start) > 2*time.Second {
				t.Errorf("Withdraw: %v after %v and %d removals; want one, and one more after the last Put must have ended", err, time.Since(start), len(f.made("remove")))
			}
		})
	})
	t.Run("the only Put takes effect after the first Remove has failed", func(t *testing.T) {
		announced(t, func(t *testing.T, f *faulty, a *discovery.Announcer, _ *bytes.Buffer) {
			d := f.Open()
			f.set(func(_ context.Context, call string) error {
				if call == "put" {
					time.AfterFunc(time.Second, func() { _ = d.Put(context.Background(), valid(), ttl) })
				} else {
					f.set(nil)
				}
				return errDown
			})
			a.Start()
			synctest.Wait()
			if err := a.Withdraw(t.Context()); err != nil || len(f.made("put")) != 1 {
				t.Errorf("Withdraw: %v after %d puts", err, len(f.made("put")))
			}
			time.Sleep(2 * time.Second)
			if got := f.weight(t); got != -1 {
				t.Errorf("listed with weight %d after Withdraw", got)
			}
		})
	})
	t.Run("never started", func(t *testing.T) {
		announced(t, func(t *testing.T, f *faulty, a *discovery.Announcer, _ *bytes.Buffer) {
			if err := a.Withdraw(t.Context()); err != nil || len(f.made("remove")) != 0 {
				t.Errorf("Withdraw: %v, %d removals", err, len(f.made("remove")))
			}
			a.Start()
			synctest.Wait()
			if f.weight(t) != -1 {
				t.Error("Start after Withdraw has published the node")
			}
		})
	})
}

// TestAnnouncePanics: a panic of the directory is an error of one call.
func TestAnnouncePanics(t *testing.T) {
	announced(t, func(t *testing.T, f *faulty, a *discovery.Announcer, _ *bytes.Buffer) {
		f.set(func(context.Context, string) error { panic("an accident") })
		a.Start()
		time.Sleep(time.Minute)
		if err := a.Status().Err; err == nil || !strings.Contains(err.Error(), "an accident") {
			t.Errorf("Status: %v", err)
		}
		f.set(nil)
		time.Sleep(ttl)
		if got := f.weight(t); got != valid().Weight {
			t.Errorf("listed with weight %d after the directory works again", got)
		}
	})
}

func TestConfig(t *testing.T) {
	for _, tt := range []struct {
		name string
		node discovery.Node
		cfg  discovery.Config
		want string
	}{
		{"a short ttl", valid(), discovery.Config{TTL: 2 * time.Second}, "announcement ttl="},
		{"a long ttl", valid(), discovery.Config{TTL: 2 * time.Hour}, "announcement ttl="},
		{"a timeout above the ttl", valid(), discovery.Config{TTL: 3 * time.Second, Timeout: 4 * time.Second}, "announcement timeout="},
		{"no node", discovery.Node{}, discovery.Config{}, "node id="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := discovery.NewAnnouncer(memory.NewDirectory(nil), tt.node, tt.cfg)
			if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("NewAnnouncer: %v; want %s", err, tt.want)
			}
		})
	}
}
