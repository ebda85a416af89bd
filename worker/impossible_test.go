package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// TestClockOutsideTheLayout: a clock that no ID can have claims nothing, however often the
// node starts, and when it is set right the node serves by itself.
func TestClockOutsideTheLayout(t *testing.T) {
	for _, by := range []time.Duration{100 * year, -30 * year} {
		for _, kind := range []worker.Kind{worker.Leased, worker.Fixed} {
			run(t, kind, func(w *world) {
				a := w.node("a")
				a.clock.step(by)
				for range 3 {
					a.crash()
					if err := a.begin(); err != nil {
						t.Fatalf("%s, a clock that is wrong by %v: start: %v", kind, by, err)
					}
					time.Sleep(5 * time.Second)
					a.says(leaf.ErrClock, "IDs of its layout have times from 2010-11-04T01:42:54Z until 2080-07-10T")
				}
				if used := w.records.used(); used != 0 {
					t.Errorf("%s, a clock that is wrong by %v: %d numbers are claimed", kind, by, used)
				}
				a.clock.step(-by)
				time.Sleep(5 * time.Second)
				a.issue(1000)
				if text := a.alarms.has(leaf.AlarmClock); text != "" {
					t.Errorf("%s, a clock that was wrong by %v: alarm %s", kind, by, text)
				}
			})
		}
	}
}

// TestWipeBesideAClockBeforeTheEpoch: the registry is wiped while its node is cut off. The
// first node that claims there has a clock that was never set. Another one must wait all the
// same until the node that is cut off has stopped.
func TestWipeBesideAClockBeforeTheEpoch(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		only := func(c *worker.Config) { c.Numbers = leaf.Range{Lo: 0, Hi: 2} }
		a := w.node("a", only)
		a.far = &island{records: w.records}
		a.up().issue(1000)
		a.far.off.Store(true)
		w.records.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
		wiped := func(c *worker.Config) { c.Fresh = false }
		b := w.node("b", only, wiped)
		b.clock.step(-30 * year)
		if err := b.begin(); err != nil {
			t.Fatal(err)
		}
		c := w.node("c", only, wiped)
		if err := c.begin(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		a.issue(1000)
		if st := c.Status(); st.Ready {
			t.Errorf("a node with a right clock issues with worker ID %d beside the node that is cut off, which has %d", st.Number, a.Status().Number)
		}
	})
}

// TestConfirmationByAClockBeforeTheEpoch: neither does a node that started from its own file
// make a namespace by such a clock.
func TestConfirmationByAClockBeforeTheEpoch(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		a := w.node("a").up()
		a.issue(10)
		a.crash()
		w.records.breakOff(true)
		a.up()
		time.Sleep(5 * time.Second) // until the t of its file
		a.issue(10)
		a.clock.step(-30 * year)
		w.records.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
		w.records.breakOff(false)
		time.Sleep(10 * time.Second)
		w.records.set(func(r *records) {
			if r.ns != nil {
				t.Errorf("a clock before the epoch made the namespace %+v", *r.ns)
			}
		})
	})
}

// TestClockIsBeforeTheEpochForAWhile: the clock of a node that runs steps back to before the
// epoch, and is set right later than a step back is forgotten. The node goes on by itself.
func TestClockIsBeforeTheEpochForAWhile(t *testing.T) {
	for _, kind := range []worker.Kind{worker.Leased, worker.Fixed} {
		run(t, kind, func(w *world) {
			n := w.node("a").up()
			time.Sleep(5 * time.Second)
			n.issue(100)
			n.clock.step(-30 * year)
			time.Sleep(30 * time.Minute)
			n.says(leaf.ErrClock, "")
			for _, alarm := range n.alarms.list() {
				if alarm.Code == leaf.AlarmClock && !strings.HasPrefix(alarm.Do, "set the clock of this node right") {
					t.Errorf("%s: alarm %+v", kind, alarm)
				}
			}
			n.clock.step(30 * year)
			time.Sleep(10 * time.Second)
			n.issue(1000)
			if text := n.alarms.has(leaf.AlarmClock); text != "" {
				t.Errorf("%s: alarm %s", kind, text)
			}
		})
	}
}

// TestNothingConfirmsAnImpossibleClock: the clock of a node that runs jumps past the end of the
// layout, where no ID can be. Neither an operator nor peers with the same wrong clock make T follow:
// it would be the end, so that the number could never be used again.
func TestNothingConfirmsAnImpossibleClock(t *testing.T) {
	for _, by := range []time.Duration{100 * year, -30 * year} {
		for _, kind := range []worker.Kind{worker.Leased, worker.Fixed} {
			for _, peers := range []int{0, 3} {
				run(t, kind, func(w *world) {
					n := w.node("a")
					c := w.crowd(peers)
					c.answers(n)
					n.up()
					time.Sleep(5 * time.Second)
					n.issue(100)
					number, limit := n.Status().Number, n.clock.Now().Add(time.Hour).UnixMilli()
					n.clock.step(by)
					c.all(by)
					if peers == 0 {
						if now, err := n.ConfirmClock(); !errors.Is(err, leaf.ErrClock) {
							t.Errorf("%s, a clock that is wrong by %v: ConfirmClock = %v, %v; want ErrClock", kind, by, now, err)
						}
					}
					time.Sleep(5 * time.Minute)
					if bound := w.records.record(number).Bound; bound > limit {
						t.Errorf("%s, %d peers, a clock that is wrong by %v: worker ID %d is burnt until %v", kind, peers, by, number, time.UnixMilli(bound).UTC())
					}
					n.refuses(leaf.ErrClock)
					n.clock.step(-by)
					c.all(0)
					time.Sleep(time.Minute)
					n.issue(1000)
				})
			}
		}
	}
}

// burned is a registry that gives every claim a floor past the end of the layout.
type burned struct{ worker.Registry }

func (b burned) Claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	r, err := b.Registry.Claim(ctx, req)
	r.Floor = snowflake.Leaf().End().Add(year).UnixMilli()
	r.Bound = max(r.Bound, r.Floor)
	return r, err
}

// TestNumberPastTheLayout: the number of a node may be used only past the end of the layout, because
// a clock was wrong, that of a Java server for example. That is a fault of one number. The start is
// not refused, so that segment mode is served, and an alarm says why snowflake mode issues nothing.
func TestNumberPastTheLayout(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a")
		if err := n.start(burned{worker.NewPool(w.records)}); err != nil {
			t.Errorf("start: %v", err)
		}
		time.Sleep(time.Minute)
		n.says(leaf.ErrClock, "past the end of the layout")
		if text := n.alarms.has(leaf.AlarmClaim); !strings.Contains(text, "can never be used") {
			t.Errorf("alarm %q", text)
		}
	})
}
