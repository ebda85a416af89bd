package worker_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// damage marks numbers of the registry as unreadable.
func (w *world) damage(numbers ...int64) {
	w.records.set(func(r *records) {
		for _, n := range numbers {
			r.byNum[n] = worker.Record{Number: n, Damage: "it is of format 7"}
		}
	})
}

// TestDamagedRecordsAlarm: a node serves beside records that cannot be read, with an
// alarm that names them, and takes none of their numbers. The alarm ends with them.
func TestDamagedRecordsAlarm(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		w.damage(-1, 0, 1, 2)
		n := w.node("a").up()
		if p := n.issue(10); p.Worker != 3 {
			t.Errorf("worker ID %d, whose record cannot be read", p.Worker)
		}
		text := n.alarms.has(leaf.AlarmRegistry)
		for _, want := range []string{"4 records", "an entry without a number: it is of format 7", "worker ID 0:", "and 1 more"} {
			if !strings.Contains(text, want) {
				t.Errorf("alarm %q, want %s", text, want)
			}
		}
		time.Sleep(10 * time.Minute)
		if n.alarms.has(leaf.AlarmRegistry) == "" {
			t.Error("the alarm has ended, and the damage is there")
		}
		w.records.set(func(r *records) {
			for n := int64(-1); n < 3; n++ {
				delete(r.byNum, n)
			}
		})
		time.Sleep(2 * time.Minute)
		if text := n.alarms.has(leaf.AlarmRegistry); text != "" {
			t.Errorf("nothing is damaged any more, and the alarm says %q", text)
		}
	})
}

// TestAllDamaged: no number is left, and the error says why.
func TestAllDamaged(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		w.damage(0, 1, 2, 3)
		n := w.node("a").up()
		n.says(leaf.ErrNotReady, "the records of 4 cannot be read")
	})
}

// TestStandbyForANumberThatDoesNotReturn: neither node of a pair serves, and no owner goes away, so they complain.
func TestStandbyForANumberThatDoesNotReturn(t *testing.T) {
	t.Run("its record cannot be read", func(t *testing.T) {
		run(t, worker.Leased, func(w *world) {
			w.damage(0)
			n := w.node("a", func(c *worker.Config) { c.Numbers.Hi, c.Standby = 1, true }).up()
			if text := n.alarms.has(leaf.AlarmClaim); !strings.Contains(text, "the records of 1 cannot be read") {
				t.Errorf("alarm %q, status %+v", text, n.Status())
			}
		})
	})
	t.Run("the clock of its last owner was a year ahead", func(t *testing.T) {
		run(t, worker.Leased, func(w *world) {
			pair := func(c *worker.Config) { c.Numbers.Hi, c.Standby = 1, true }
			a := w.node("a", pair)
			a.clock.step(365 * 24 * time.Hour)
			a.up().issue(10)
			a.crash()
			b := w.node("b", pair).up()
			if text := b.alarms.has(leaf.AlarmClaim); !strings.Contains(text, "the next one returns in") {
				t.Errorf("alarm %q, status %+v", text, b.Status())
			}
		})
	})
	t.Run("the registry counts up, and is past the range", func(t *testing.T) {
		run(t, worker.Fixed, func(w *world) {
			n := w.node("a", func(c *worker.Config) { c.Standby = true })
			if err := n.start(usedUp{worker.NewPool(w.records)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if text := n.alarms.has(leaf.AlarmClaim); !strings.Contains(text, "the next number is 4") {
				t.Errorf("alarm %q, status %+v", text, n.Status())
			}
		})
	})
}

// usedUp is a registry of fixed numbers that has given all of them.
type usedUp struct{ worker.Registry }

func (usedUp) Claim(context.Context, worker.Request) (worker.Record, error) {
	return worker.Record{}, fmt.Errorf("%w: the next number is 4", worker.ErrFull)
}

// garbled is a registry that cannot read the record of the claimer's identity.
type garbled struct {
	worker.Registry

	mended atomic.Bool
}

func (u *garbled) Claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	if !u.mended.Load() {
		return worker.Record{}, fmt.Errorf("%w: it is of format 7", worker.ErrDamaged)
	}
	return u.Registry.Claim(ctx, req)
}

// TestDamagedIdentity: the registry cannot read the record of a node's own identity. The start is
// not refused, so that segment mode is served. The node issues nothing, not even from its own file,
// and complains, also as one of a pair. When the record is mended it serves.
func TestDamagedIdentity(t *testing.T) {
	for _, standby := range []bool{false, true} {
		run(t, worker.Fixed, func(w *world) {
			n := w.node("a", func(c *worker.Config) { c.Standby = standby }).up()
			time.Sleep(5 * time.Second)
			n.issue(10)
			n.crash()
			registry := &garbled{Registry: worker.NewPool(w.records)}
			if err := n.start(registry); err != nil {
				t.Errorf("start: %v", err)
			}
			time.Sleep(time.Minute)
			n.says(leaf.ErrNotReady, "it is of format 7")
			if text := n.alarms.has(leaf.AlarmClaim); !strings.Contains(text, "it is of format 7") {
				t.Errorf("standby %t: alarm %q", standby, text)
			}
			registry.mended.Store(true)
			time.Sleep(10 * time.Second)
			n.issue(10)
			if text := n.alarms.has(leaf.AlarmClaim); text != "" {
				t.Errorf("standby %t: alarm %q although the record is mended", standby, text)
			}
		})
	}
}
