package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// TestFirstClockIsYearsAhead: the first node of a registry that nobody declared new has a
// clock that is years ahead. When its clock is set right, neither it nor any other node marks
// numbers with a T of that future, and the cure of the alarm gives all of them back but the one
// that was held.
func TestFirstClockIsYearsAhead(t *testing.T) {
	const years = 5 * 365 * 24 * time.Hour
	for _, tt := range []struct {
		name string
		then func(a *node)
	}{
		{"set right while it waits", func(a *node) { a.clock.step(-years) }},
		{"set right after it has issued", func(a *node) {
			time.Sleep(2 * time.Minute)
			a.issue(100)
			a.clock.step(-years)
		}},
		{"killed and started again", func(a *node) {
			a.crash()
			a.clock.step(-years)
			a.up()
		}},
		{"gone", func(a *node) { a.crash() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, worker.Leased, func(w *world) {
				registered := func(c *worker.Config) { c.Fresh = false }
				a := w.node("a", registered)
				a.clock.step(years)
				a.up()
				tt.then(a)
				b, c := w.node("b", registered).up(), w.node("c", registered).up()
				time.Sleep(20 * time.Minute)
				if used := w.records.used(); used != 1 {
					t.Errorf("%d numbers are marked with a T that lies years ahead; want 1", used)
				}
				for _, n := range []*node{b, c} {
					n.says(leaf.ErrClock, "may be used before 2028-12-30T")
					if text := n.alarms.has(leaf.AlarmClaim); !strings.Contains(text, "stop all nodes of the registry and delete the namespace of the registry and nothing of its numbers. The numbers") {
						t.Errorf("alarm %q", text)
					}
					n.stop()
				}
				a.crash()
				w.records.set(func(r *records) { r.ns = nil }) // as the text says
				b.up()
				c.up()
				time.Sleep(90 * time.Second)
				for _, n := range []*node{b, c} {
					n.issue(5000)
					if all := n.alarms.list(); len(all) > 0 {
						t.Errorf("%s has alarms %v", n.name, all)
					}
				}
			})
		})
	}
}
