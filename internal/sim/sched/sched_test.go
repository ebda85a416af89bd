package sched_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/sched"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// busy runs goroutines that wait, wake one another and draw chance, and returns what
// happened in which order.
func busy(seed uint64) (hash uint64, order string) {
	s := sched.New(seed)
	defer s.End()
	p := s.NewMachine("a", start).Boot()
	var mu sync.Mutex // as in an engine: never held across a scheduling point
	var out strings.Builder
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&out, format+" ", args...)
	}
	wake := make(chan struct{})
	for i := range 10 {
		p.Go(func() {
			p.Sleep(p.Jitter(time.Millisecond))
			say("%d", i)
			if i == 7 {
				close(wake)
			}
			err := p.Wait(context.Background(), wake, 0)
			say("woken:%d:%v", i, err)
			p.Boundary()
			say("end:%d@%v", i, s.Elapsed())
		})
	}
	s.Run(time.Second)
	return s.Hash(), out.String()
}

// TestSeedDecides: equal seeds make equal runs, others do not.
func TestSeedDecides(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(50) {
		h1, o1 := busy(seed)
		h2, o2 := busy(seed)
		if h1 != h2 || o1 != o2 {
			t.Fatalf("seed %d: %x %s\nthen %x %s", seed, h1, o1, h2, o2)
		}
		orders[o1] = true
	}
	if len(orders) < 45 {
		t.Errorf("50 seeds made %d orders", len(orders))
	}
}

// TestClocks: each moves as documented, and a Time carries two of them.
func TestClocks(t *testing.T) {
	s := sched.New(1)
	defer s.End()
	m := s.NewMachine("a", start)
	p := m.Boot()
	begin := p.Now()
	at := func(d time.Duration, f func()) { s.After(d, f) }
	check := func(what string, wall, mono, elapsed time.Duration) func() {
		return func() {
			now := p.Now()
			if got := now.Round(0).Sub(begin.Round(0)); got != wall {
				t.Errorf("%s: wall %v, want %v", what, got, wall)
			}
			if got := now.Sub(begin); got != mono {
				t.Errorf("%s: monotonic %v, want %v", what, got, mono)
			}
			if got := m.Elapsed(); got != elapsed {
				t.Errorf("%s: elapsed %v, want %v", what, got, elapsed)
			}
			if got := now.UnixNano() - begin.UnixNano(); got != int64(wall) {
				t.Errorf("%s: UnixNano %d", what, got)
			}
		}
	}
	sec := time.Second
	at(10*sec, check("plain", 10*sec, 10*sec, 10*sec))
	at(10*sec, func() { m.Step(-sec * 3600) })
	at(20*sec, check("stepped back", 20*sec-3600*sec, 20*sec, 20*sec))
	at(20*sec, func() { m.Step(3600 * sec); m.Drift(1000) })
	at(30*sec, check("fast", 30*sec+10*time.Millisecond, 30*sec+10*time.Millisecond, 30*sec+10*time.Millisecond))
	at(30*sec, func() { m.Drift(-1000) })
	at(40*sec, func() { m.Drift(0); m.Freeze() })
	at(50*sec, check("frozen", 40*sec, 50*sec, 50*sec))
	at(50*sec, m.Thaw)
	at(60*sec, check("thawed", 50*sec, 60*sec, 60*sec))
	at(60*sec, func() { m.Suspend(100 * sec) })
	at(170*sec, check("after a suspension", 160*sec, 70*sec, 170*sec))
	s.Run(time.Hour)
}

// TestLowestOffset: between two moments a clock was as far behind as its steps made it, also
// when it was set right since.
func TestLowestOffset(t *testing.T) {
	s := sched.New(1)
	defer s.End()
	m := s.NewMachine("a", start)
	const sec = time.Second
	s.After(10*sec, func() { m.Step(-80 * sec) })
	s.After(20*sec, func() { m.Step(90 * sec) })
	s.After(30*sec, func() {
		for _, tt := range []struct{ from, to, want time.Duration }{
			{0, 5 * sec, 0},
			{5 * sec, 15 * sec, -80 * sec},
			{12 * sec, 13 * sec, -80 * sec},
			{18 * sec, 22 * sec, -80 * sec},
			{22 * sec, 25 * sec, 10 * sec},
			{0, 30 * sec, -80 * sec},
		} {
			if got := m.Lowest(tt.from, tt.to); got != tt.want {
				t.Errorf("from %v to %v: %v, want %v", tt.from, tt.to, got, tt.want)
			}
		}
	})
	s.Run(time.Minute)
}

// TestSuspendedTimers stand still, those of a paused process do not.
func TestSuspendedTimers(t *testing.T) {
	for _, tt := range []struct {
		name string
		stop func(p *sched.Process)
		want time.Duration
	}{
		{"suspended", func(p *sched.Process) { p.Suspend(time.Minute) }, 70 * time.Second},
		{"paused", func(p *sched.Process) { p.Pause(time.Minute) }, 65 * time.Second},
		{"suspended twice at once", func(p *sched.Process) { p.Suspend(time.Minute); p.Suspend(90 * time.Second) }, 100 * time.Second},
		{"suspended, then paused for less", func(p *sched.Process) { p.Suspend(time.Minute); p.Pause(time.Second) }, 70 * time.Second},
		{"paused for less", func(p *sched.Process) { p.Pause(time.Second) }, 10 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := sched.New(1)
			defer s.End()
			p := s.NewMachine("a", start).Boot()
			var woke time.Duration
			p.Go(func() {
				p.Sleep(10 * time.Second)
				woke = s.Elapsed()
			})
			s.After(5*time.Second, func() { tt.stop(p) })
			s.Run(time.Hour)
			if woke != tt.want {
				t.Errorf("woke at %v, want %v", woke, tt.want)
			}
		})
	}
}

// TestWakes: a wait ends at the moment in which its cause happens, whoever it is.
func TestWakes(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(s *sched.Scheduler, p *sched.Process, wake func()) // at 1 s
	}{
		{"another goroutine of the process", func(_ *sched.Scheduler, p *sched.Process, wake func()) { p.Go(wake) }},
		{"before it gives way to nobody", func(_ *sched.Scheduler, p *sched.Process, wake func()) {
			p.Go(func() { wake(); p.Boundary(); p.Sleep(time.Hour) })
		}},
		{"a callback", func(s *sched.Scheduler, _ *sched.Process, wake func()) { s.After(0, wake) }},
		{"a callback of the process", func(_ *sched.Scheduler, p *sched.Process, wake func()) { p.After(0, wake) }},
		{"a callback of another process", func(s *sched.Scheduler, _ *sched.Process, wake func()) {
			other := s.NewMachine("b", start).Boot()
			other.Go(func() { s.After(0, wake) })
		}},
	} {
		for _, who := range []string{"process", "world"} {
			t.Run(tt.name+" wakes the "+who, func(t *testing.T) {
				s := sched.New(1)
				defer s.End()
				s.Strict()
				p := s.NewMachine("a", start).Boot()
				waits := p
				if who == "world" {
					waits = s.World()
				}
				wake, woke := make(chan struct{}), time.Duration(0)
				waits.Go(func() {
					_ = waits.Wait(context.Background(), wake, 0)
					woke = s.Elapsed()
				})
				s.After(time.Second, func() { tt.end(s, p, func() { close(wake) }) })
				s.Run(time.Minute)
				if woke != time.Second {
					t.Errorf("woke at %v", woke)
				}
			})
		}
	}
}

// TestStrict: a process that waits for another one, with nothing between, is an error
// of the simulation, which does not go unnoticed.
func TestStrict(t *testing.T) {
	s := sched.New(1)
	defer s.End()
	s.Strict()
	a, b := s.NewMachine("a", start).Boot(), s.NewMachine("b", start).Boot()
	wake := make(chan struct{})
	a.Go(func() { _ = a.Wait(context.Background(), wake, 0) })
	b.Go(func() { b.Sleep(time.Second); close(wake); b.Sleep(time.Second) })
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "did not notice at 1s that the wait of goroutine") {
			t.Error(text)
		}
	}()
	s.Run(time.Minute)
}

// TestDeadlines: contexts end by the machine's clock, and say why.
func TestDeadlines(t *testing.T) {
	s := sched.New(1)
	defer s.End()
	p := s.NewMachine("a", start).Boot()
	p.Drift(100_000) // ten seconds of this machine are nine and a bit
	done := 0
	p.Go(func() {
		ctx, cancel := p.WithTimeout(context.Background(), 11*time.Second)
		defer cancel()
		inner, stop := p.WithTimeout(ctx, time.Hour)
		defer stop()
		child, end := context.WithCancel(inner)
		defer end()
		if err := p.Wait(inner, nil, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("inner: %v", err)
		}
		if s.Elapsed().Round(time.Microsecond) != 10*time.Second {
			t.Errorf("ended at %v", s.Elapsed())
		}
		if child.Err() == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("child %v, outer %v", child.Err(), ctx.Err())
		}
		ctx, cancel = p.WithTimeout(context.Background(), time.Second)
		cancel()
		if err := p.Wait(ctx, nil, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		open := make(chan struct{})
		close(open)
		if err := p.Wait(ctx, open, 0); err != nil {
			t.Errorf("wake-up and context: %v, want the wake-up to win", err)
		}
		done++
	})
	s.Run(time.Hour)
	if done != 1 {
		t.Fatal("the goroutine did not end")
	}
}

// TestKill: nothing of a dead process goes on, its deferred calls run, and what it
// waited for does not matter.
func TestKill(t *testing.T) {
	s := sched.New(1)
	defer s.End()
	p := s.NewMachine("a", start).Boot()
	var out bytes.Buffer
	s.Log(&out)
	ran, unwound := 0, 0
	for range 5 {
		p.Go(func() {
			defer func() { unwound++ }()
			for {
				p.Sleep(time.Second)
				ran++
			}
		})
	}
	s.After(3500*time.Millisecond, p.Kill)
	s.Run(time.Minute)
	if ran != 15 || unwound != 5 || !p.Dead() {
		t.Errorf("%d steps, %d unwound, dead %v", ran, unwound, p.Dead())
	}
	if !strings.Contains(out.String(), "killed") {
		t.Errorf("log: %s", out.String())
	}
	p.Go(func() { t.Error("a dead process started something") })
	s.Run(2 * time.Minute)
}

// TestKillAt dies at exactly the nth boundary.
func TestKillAt(t *testing.T) {
	for nth := 1; nth <= 5; nth++ {
		s := sched.New(1)
		p := s.NewMachine("a", start).Boot()
		passed := 0
		p.Go(func() {
			for range 5 {
				p.Boundary()
				passed++
			}
		})
		p.KillAt(nth)
		s.Run(time.Minute)
		s.End()
		if passed != nth-1 {
			t.Errorf("KillAt(%d): passed %d", nth, passed)
		}
		if !p.DiedAtBoundary() {
			t.Errorf("KillAt(%d): did not die there", nth)
		}
	}
	s := sched.New(1)
	defer s.End()
	p := s.NewMachine("a", start).Boot()
	p.KillAt(1)
	s.After(time.Second, p.Kill)
	s.Run(time.Minute)
	if p.DiedAtBoundary() {
		t.Error("a process without a boundary died at one")
	}
}

// TestLivelockIsFound, and a panic of simulated code is not swallowed.
func TestLivelockIsFound(t *testing.T) {
	for name, f := range map[string]func(p *sched.Process){
		"livelock": func(p *sched.Process) {
			for {
				p.Boundary()
			}
		},
		"boom": func(*sched.Process) { panic("boom") },
	} {
		s := sched.New(1)
		p := s.NewMachine("a", start).Boot()
		p.Go(func() { f(p) })
		func() {
			defer func() {
				if r := fmt.Sprint(recover()); !strings.Contains(r, name) {
					t.Errorf("%s: recovered %s", name, r)
				}
			}()
			s.Run(time.Minute)
		}()
	}
}

// TestEndUnwinds everything, also what never began and what is paused.
func TestEndUnwinds(t *testing.T) {
	s := sched.New(1)
	p := s.NewMachine("a", start).Boot()
	unwound := 0
	p.Go(func() {
		defer func() { unwound++ }()
		_ = p.Wait(context.Background(), nil, 0)
	})
	p.Go(func() {
		defer func() { unwound++ }()
		p.Sleep(2 * time.Second)
	})
	s.After(time.Second, func() { p.Pause(time.Hour) })
	s.Run(time.Minute)
	p.Go(func() { t.Error("it began after the end") })
	s.End()
	if unwound != 2 {
		t.Errorf("%d goroutines unwound, want 2", unwound)
	}
}

func BenchmarkSwitch(b *testing.B) {
	s := sched.New(1)
	defer s.End()
	p := s.World()
	for range 10 {
		p.Go(func() {
			for range b.N/10 + 1 {
				p.Sleep(time.Millisecond)
			}
		})
	}
	b.ResetTimer()
	s.Run(1 << 62)
}

// TestTimersOfFastClocks do not fire before their time: what waits for a moment by
// Now would wait again for nothing, for ever.
func TestTimersOfFastClocks(t *testing.T) {
	s := sched.New(1)
	defer s.End()
	p := s.NewMachine("a", start).Boot()
	p.Drift(7)
	rounds := 0
	p.Go(func() {
		end := p.Now().Add(time.Second)
		for ; p.Now().Before(end) && rounds < 10; rounds++ {
			p.Sleep(end.Sub(p.Now()))
		}
	})
	s.Run(time.Hour)
	if rounds > 3 {
		t.Errorf("%d waits for one moment", rounds)
	}
}
