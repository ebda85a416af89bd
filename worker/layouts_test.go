package worker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// further makes nodes with one worker ID and further layouts.
func further(main string, texts ...string) func(*worker.Config) {
	return func(c *worker.Config) {
		c.Layout, _ = snowflake.ParseLayout(main)
		c.Layouts, c.Numbers = texts, leaf.Range{Lo: 0, Hi: 1}
	}
}

// seen are the IDs of each layout, by whom they were issued.
type seen map[string]map[int64]string

// issue takes n IDs by a key, of which none was issued in the layout before, and returns the last one.
func (s seen) issue(n *node, key, layout string, count int) int64 {
	n.w.t.Helper()
	ranges, err := n.NextN(n.w.t.Context(), key, count)
	if err != nil {
		n.w.t.Fatalf("%s: %d of %s: %v; %+v", n.name, count, key, err, n.Status())
	}
	last := int64(-1)
	for id := range leaf.IDs(ranges) {
		if s[layout] == nil {
			s[layout] = map[int64]string{}
		}
		if by, repeated := s[layout][id]; repeated {
			n.w.t.Fatalf("ID %d of %s in layout %s was issued before by %s", id, n.name, layout, by)
		}
		s[layout][id], last = n.name, id
	}
	return last
}

// TestLayoutByKey: a key that is a layout chooses it, any other key has the node's own.
func TestLayoutByKey(t *testing.T) {
	const wide = "js53,worker=10,sequence=5"
	run(t, worker.Leased, func(w *world) {
		n, all := w.node("a", further("leaf", "js53", wide)).up(), seen{}
		for key, layout := range map[string]string{
			"js53": "js53", wide: wide, "js53,sequence=5,worker=10": wide, "js53,worker=6": "js53", " js53": "js53", "js53 ": "js53",
			"order": "leaf", "": "leaf", "a=b": "leaf", "leaf": "leaf", "leaf,worker=10": "leaf",
		} {
			id := all.issue(n, key, layout, 3)
			one, err := n.Next(t.Context(), key)
			l, _ := snowflake.ParseLayout(layout)
			p, decodes := l.Decode(one)
			if age := n.clock.Now().Sub(time.UnixMilli(l.Millis(p.Unit))); err != nil || decodes != nil || one <= id || age < 0 || age > time.Second {
				t.Errorf("%q: %d after %d, %v old: %v, %v", key, one, id, age, err, decodes)
			}
		}
		for _, key := range []string{"seconds", " seconds", "js53,worker=7,sequence=8", "js53,worker=11", "leaf,epoch=1"} {
			id, err := n.Next(t.Context(), key)
			if _, batch := n.NextN(t.Context(), key, 2); !errors.Is(err, leaf.ErrBadRequest) || !errors.Is(batch, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "it serves snowflake.layout and js53; "+wide) {
				t.Errorf("%q: %d, %v, %v", key, id, err, batch)
			}
		}
		w.node("b", func(c *worker.Config) { c.Numbers = leaf.Range{Lo: 1, Hi: 2} }).up().issue(1)
		plain := w.node("c", func(c *worker.Config) { c.Numbers = leaf.Range{Lo: 2, Hi: 3} }).up()
		if _, err := plain.Next(t.Context(), "seconds"); err != nil {
			t.Errorf("without further layouts keys are ignored: %v", err)
		}
	})
}

func TestFurtherLayoutsAreValidated(t *testing.T) {
	for _, tt := range []struct {
		main, text string
		most       int64
		want       string
	}{
		{"leaf", "lief", 4, `layouts: snowflake: invalid value: layout="lief"`},
		{"leaf", "leaf", 4, `layouts="leaf": must differ`},
		{"leaf", "seconds,worker=10", 4, `must differ`},
		{"leaf", "leaf,worker=10", 4, `must differ`},
		{"leaf", "dc", 4, `layouts="dc": must have the field datacenter if and only if`},
		{"dc", "leaf", 4, `layouts="leaf": must have the field datacenter`},
		{"leaf", "js53", 65, `worker-range="0-64": must lie within 0-63, the workers of the layout js53`},
		{"dc", "dc,datacenter=1,worker=6", 4, `datacenter="3": must be 0 to 1 in the layout dc,datacenter=1,worker=6`},
	} {
		c := worker.Config{Namespace: "test", Address: "10.0.0.1:80", Numbers: leaf.Range{Hi: tt.most}, Layouts: []string{"seconds", tt.text}}
		c.Layout, _ = snowflake.ParseLayout(tt.main)
		if c.Layout.DatacenterBits > 0 {
			c.Datacenter, c.Layouts = new(int64(3)), c.Layouts[1:]
		}
		if _, err := worker.New(worker.NewPool(newRecords(worker.Leased)), nil, c); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s beside %s: %v; want %s", tt.text, tt.main, err, tt.want)
		}
	}
}

// TestHandoverOfFurtherLayouts: the next owner of a number repeats no ID of any layout, also where T
// lies within a unit, and can issue of every layout as soon as it serves.
func TestHandoverOfFurtherLayouts(t *testing.T) {
	long.Plain(t)
	layouts := []string{"leaf", "js53", "seconds", "seconds,epoch=1700000000123", "unit=10ms,epoch=1700000000004,time=40,worker=8,sequence=10"}
	for _, kind := range []worker.Kind{worker.Leased, worker.Fixed} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("%v %d", kind, seed), func(t *testing.T) {
				run(t, kind, func(w *world) { handOver(w, rand.New(rand.NewPCG(seed, 0)), layouts) })
			})
		}
	}
}

func handOver(w *world, rng *rand.Rand, layouts []string) {
	order := rng.Perm(len(layouts))
	own, texts := layouts[order[0]], []string{layouts[order[1]], layouts[order[2]]}
	n, all, key := w.node("a", further(own, texts...)), seen{}, texts[0]
	for range 6 {
		if err := n.begin(); err != nil {
			w.t.Fatal(err)
		}
		for s := n.Status(); !s.Ready; s = n.Status() { // a crash costs a horizon and the margin
			time.Sleep(time.Millisecond)
			if s.State == worker.Waiting {
				time.Sleep(time.UnixMilli(s.Floor).Sub(n.clock.Now()))
			}
		}
		for i := range rng.IntN(3) + 1 { // the first key is often the last one of the process before
			if i > 0 || rng.IntN(3) == 0 {
				key = append(texts, own)[rng.IntN(3)]
			}
			time.Sleep(time.Duration(i*rng.IntN(1500)) * time.Millisecond)
			all.issue(n, key, key, 200) // more than the random start of a unit
		}
		if rng.IntN(3) > 0 {
			n.stop()
		} else {
			n.crash()
		}
		if bound := w.records.record(0).Bound; bound != n.cfg.Layout.Millis(n.cfg.Layout.Ceil(bound)) {
			w.t.Fatalf("T=%d is no whole unit of %s", bound, own)
		}
	}
}

// TestFurtherLayoutsEndAtT: guarantee 6 holds for all of them, also where T lies within a unit.
func TestFurtherLayoutsEndAtT(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n, all := w.node("a", further("leaf", "seconds")).up(), seen{}
		time.Sleep(time.Minute)
		all.issue(n, "seconds", "seconds", 10)
		w.records.breakOff(true)
		synctest.Wait() // a renewal of this moment has its answer
		bound := n.Status().Bound
		time.Sleep(time.UnixMilli(bound).Sub(n.clock.Now()) - 100*time.Millisecond)
		all.issue(n, "seconds", "seconds", 10)
		if s := n.Status(); s.Position > bound || s.Bound != bound {
			t.Errorf("the second that T lies in: T=%d: %+v", bound, s)
		}
		time.Sleep(time.Minute)
		if id, err := n.Next(t.Context(), "seconds"); !errors.Is(err, leaf.ErrNotReady) {
			t.Errorf("beyond T: %d, %v", id, err)
		}
	})
}

// TestFurtherLayoutEnds: the end of a further layout is announced with its name.
func TestFurtherLayoutEnds(t *testing.T) {
	const short = "time=39,worker=4,sequence=4" // until April 2028
	run(t, worker.Leased, func(w *world) {
		n := w.node("a", further("leaf", short))
		l, _ := snowflake.ParseLayout(short)
		n.clock.step(l.End().Sub(n.clock.Now()) - 30*24*time.Hour)
		n.up()
		time.Sleep(4 * time.Second)
		if text := n.alarms.has(leaf.AlarmExhausted); !strings.Contains(text, "the layout "+short+" has no more IDs from 2028-04-") {
			t.Errorf("alarm %q", text)
		}
		late := w.node("b", further("leaf", short))
		late.clock.step(l.End().Sub(late.clock.Now()))
		if err := late.begin(); err != nil {
			t.Fatal(err)
		}
		late.refuses(leaf.ErrClock)
	})
}
