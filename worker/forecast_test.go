package worker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// TestForecastOfExhaustion: fixed numbers of addresses that changed are used up for
// ever. A node that claims says so from 80 % on, names how many, and not before.
func TestForecastOfExhaustion(t *testing.T) {
	for _, test := range []struct {
		name    string
		kind    worker.Kind
		highest int64 // in the registry before, of 0-19
		alarm   string
	}{
		{"below", worker.Fixed, 14, ""},
		{"at 80 percent", worker.Fixed, 15, "16 of 20 worker IDs"},
		{"one is left", worker.Fixed, 18, "19 of 20 worker IDs"},
		{"leased numbers return", worker.Leased, 18, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			run(t, test.kind, func(w *world) {
				n := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 }).up() // number 0
				n.cfg.Numbers.Hi = 20
				w.records.set(func(r *records) {
					// The addresses of before are gone with their pods; most records, too.
					r.byNum[test.highest] = worker.Record{Number: test.highest, Address: fmt.Sprint("gone-", test.highest), Nonce: "gone", Version: "1"}
				})
				n.stop()
				n.up()
				text := n.alarms.has(leaf.AlarmExhausted)
				if test.alarm == "" && text != "" || !strings.Contains(text, test.alarm) {
					t.Errorf("alarm %q, want %q", text, test.alarm)
				}
				for _, al := range n.alarms.list() {
					if al.Code == leaf.AlarmExhausted && !strings.Contains(al.Do, "and Java servers for good, wait for the longest horizon, longer after a clock was ahead (docs/SNOWFLAKE.md#operating), and then start") {
						t.Errorf("Java servers that go on have numbers that a leased registry gives, too, and one that was used before does not wait: %q", al.Do)
					}
				}
				n.stop()
				w.records.set(func(r *records) { delete(r.byNum, test.highest) })
				n.up()
				time.Sleep(11 * time.Minute) // the owner of a record that is gone may live
				if text := n.alarms.has(leaf.AlarmExhausted); text != "" {
					t.Errorf("the numbers are free again, and the alarm says %q", text)
				}
			})
		})
	}
}
