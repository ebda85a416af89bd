package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/internal/sim/world"
)

// The kinds of faults that befall applications.
const (
	ApplicationKilled  world.Kind = "application killed with a cache of IDs"
	ApplicationPaused  world.Kind = "application paused"
	ApplicationWeather world.Kind = "calls of an application lost, late and doubled"
)

// errNoReply is what a call to a node ends with if the reply does not come.
var errNoReply = fmt.Errorf("%w: no reply of the node", leaf.ErrNotReady)

// application is a program with the cache of the Go client, on a machine of its own. It
// asks any node that runs, over a network that loses, delays and doubles.
//
// What it must keep: an ID that the cache hands out was in a reply that arrived, and is
// handed out once for each time that it arrived; after a clean Close every ID that
// arrived was handed out or is counted as unused; no call outlives its deadline.
type application struct {
	m       *segmentMode
	name    string
	machine *sched.Machine
	proc    *sched.Process // nil while it is down
	cache   *cache.Cache
	stock   map[string]map[int64]int // of each tag: how often an ID arrived and was not handed out
	left    int64                    // the sum of it
	weather float64                  // chance of each mishap, per call
}

func newApplication(m *segmentMode, name string) *application {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &application{m: m, name: name, machine: m.w.sched.NewMachine(name, start)}
}

// start boots a process with an empty cache.
func (a *application) start() {
	if a.proc != nil && !a.proc.Dead() {
		return
	}
	rng := a.m.w.rng
	a.proc = a.machine.Boot()
	a.stock, a.left = map[string]map[int64]int{}, 0
	var err error
	a.cache, err = cache.New(a.source(), cache.Config{
		Min: 1 + rng.IntN(8), Max: 8 + rng.IntN(120), Span: time.Second + a.m.w.upTo(time.Minute),
		FetchTimeout: time.Second, MaxTags: 1 + rng.IntN(4), Runtime: a.proc,
	})
	if err != nil {
		panic(err) // the values above are within their limits
	}
	for range 2 {
		a.proc.Go(a.work)
	}
}

// work is a caller: it idles, then wants some IDs of one tag.
func (a *application) work() {
	m, rng := a.m, a.m.w.rng
	for {
		a.proc.Sleep(m.w.upTo(2 * time.Minute))
		t := m.tags[rng.IntN(len(m.tags))]
		for range 1 + rng.IntN(12) {
			n := 1
			if rng.IntN(6) == 0 {
				n = 2 + rng.IntN(m.batch(t, 2, 30))
			}
			if a.take(t.name, n, 1+m.w.upTo(3*time.Second)) != nil {
				break
			}
		}
	}
}

// take asks the cache for n IDs and checks what it gets.
func (a *application) take(tag string, n int, limit time.Duration) (err error) {
	w, p, began := a.m.w, a.proc, a.m.w.sched.Elapsed()-a.proc.Stood()
	ctx, cancel := p.WithTimeout(context.Background(), limit)
	defer cancel()
	var got []leaf.Range
	if n == 1 {
		var id int64
		if id, err = a.cache.Next(ctx, tag); err == nil {
			got = []leaf.Range{{Lo: id, Hi: id + 1}}
		}
	} else {
		got, err = a.cache.NextN(ctx, tag, n)
	}
	if late := w.sched.Elapsed() - p.Stood() - began - limit; late > callGrace {
		w.Failf("%s: a call for %d of %q ended %v after its deadline", a.name, n, tag, late)
	}
	if err != nil {
		if leaf.ClassOf(err).Err == nil {
			w.Failf("%s: a call for %d of %q got an error of no class: %v", a.name, n, tag, err)
		}
		return err
	}
	total, last := int64(0), int64(-1)
	for _, r := range got {
		if total += r.Len(); r.Lo <= last {
			w.Failf("%s: a call for %d of %q got %v, which does not grow", a.name, n, tag, got)
		}
		last = r.Hi - 1
		a.handedOut(tag, r)
	}
	if total != int64(n) {
		w.Failf("%s: a call for %d of %q got %v", a.name, n, tag, got)
	}
	return nil
}

// handedOut checks IDs that the cache gave to a caller.
func (a *application) handedOut(tag string, r leaf.Range) {
	for id := r.Lo; id < r.Hi; id++ {
		if a.stock[tag][id] == 0 {
			a.m.w.Failf("%s: the cache handed out %d of %q more often than it arrived", a.name, id, tag)
		}
		a.stock[tag][id]--
	}
	a.left -= r.Len()
}

// arrived notes IDs that a reply brought.
func (a *application) arrived(tag string, ranges []leaf.Range) {
	if a.stock[tag] == nil {
		a.stock[tag] = map[int64]int{}
	}
	for _, r := range ranges {
		for id := r.Lo; id < r.Hi; id++ {
			a.stock[tag][id]++
		}
		a.left += r.Len()
	}
}

// close ends the process cleanly.
func (a *application) close() {
	p := a.proc
	p.Go(func() {
		ctx, cancel := p.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := a.cache.Close(ctx); err != nil {
			a.m.w.Failf("%s: %v", a.name, err)
		}
		p.Sleep(5 * time.Second) // calls under way have taken some, or return what they took in vain
		if st := a.cache.Stats(); st.Unused != a.left || st.Held != 0 {
			a.m.w.Failf("%s: %d IDs arrived and were not handed out, but the closed cache says %+v", a.name, a.left, st)
		}
		a.m.w.sched.After(0, func() { a.kill(p) })
	})
}

// kill ends a process as SIGKILL does, and starts the next one later.
func (a *application) kill(p *sched.Process) {
	p.Kill()
	a.m.w.sched.After(a.m.w.upTo(time.Minute), a.start)
}

// applicationFaults returns what the nemesis may do to the applications.
func (m *segmentMode) applicationFaults() []fault {
	on := func(f func(a *application)) func() bool {
		return func() bool {
			if len(m.apps) == 0 {
				return false
			}
			a := m.apps[m.w.rng.IntN(len(m.apps))]
			if a.proc == nil || a.proc.Dead() {
				return false
			}
			f(a)
			return true
		}
	}
	return []fault{
		{ApplicationKilled, 1, on(func(a *application) { a.kill(a.proc) })},
		{ApplicationPaused, 1, on(func(a *application) { a.proc.Pause(m.w.upTo(3 * time.Minute)) })},
		{ApplicationWeather, 1, on(func(a *application) {
			a.weather = 0.3 * m.w.rng.Float64()
			m.w.sched.After(m.w.upTo(10*time.Minute), func() { a.weather = 0 })
		})},
	}
}

// problems returns what is wrong with an application after the calm, when every node
// serves every tag. It runs on a goroutine of the process.
func (a *application) problems() (all []string) {
	for _, t := range a.m.tags {
		if !t.exists || t.strict { // the node that is asked may not own it
			continue
		}
		err := a.take(t.name, 1, 3*time.Second)
		for range 3 { // a node that stops just now may have been asked
			if !errors.Is(err, leaf.ErrNotReady) {
				break
			}
			err = a.take(t.name, 1, 3*time.Second)
		}
		if errors.Is(err, leaf.ErrRegress) && a.m.latchedLately(t.name) {
			continue
		}
		if err != nil {
			all = append(all, fmt.Sprintf("%s gets no ID of %q: %v", a.name, t.name, err))
		}
	}
	slices.Sort(all)
	return all
}
