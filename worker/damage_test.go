package worker_test

import (
	"strings"
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
