package segment_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// TestDegradedRangeInsideAnothersTail: the database loses commits while a node works without
// the cluster fence, so its range lies inside the unused tail of another node's range, and the
// entry covers the range already. Once the node has merged its marks, the return of that tail
// must not lower the entry and the row below its range.
func TestDegradedRangeInsideAnothersTail(t *testing.T) {
	for _, c := range []struct {
		name    string
		lost    segment.Row // after it the row ends where the tail does, or below
		before  bool        // the node was under the cluster fence before the outage
		restart bool
		rebuild bool // the fence file is lost meanwhile
	}{
		{"it ends where the tail ends", segment.Row{Tag: "order", MaxID: 51, Step: 50}, false, false, false},
		{"the node was under the cluster fence before", segment.Row{Tag: "order", MaxID: 51, Step: 50}, true, false, false},
		{"it ends inside the tail", segment.Row{Tag: "order", MaxID: 51, Step: 20}, false, false, false},
		{"the node starts again in the outage", segment.Row{Tag: "order", MaxID: 51, Step: 50}, false, true, false},
		{"the node starts again with a rebuilt fence", segment.Row{Tag: "order", MaxID: 51, Step: 50}, false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, d, ids := newStore(row(100)), memory.NewFence(), newDisk(), newLedger()
				tail := node(t, s, nil, fenced("tail", sharing(f), nil))
				ids.add(t, "tail", next(t, tail, "order"))

				mine := sharing(f)
				if !c.before {
					mine.breakDown()
				}
				a := node(t, s, d, degraded(mine, nil))
				if c.before {
					time.Sleep(time.Second)
					if !merged(d) {
						t.Fatal("not under the cluster fence: the test no longer tests what it says")
					}
					mine.breakDown()
				}
				s.Put(c.lost)
				ids.add(t, "a", next(t, a, "order"))
				if c.restart { // the process before stays cut off
					d, mine = d.copy(), sharing(f)
					mine.breakDown()
					if c.rebuild {
						d.set(func(d *disk) { d.files["fence"] = d.files["fence"][:10] })
						if err := fence.Rebuild(d, "a", map[string]int64{"order": s.maxID(t, "order")}); err != nil {
							t.Fatal(err)
						}
					}
					a = node(t, s, d, degraded(mine, nil))
				}
				mine.heal()
				time.Sleep(time.Minute)
				if end, high := mine.end(t, "order"), a.Mark("order").High; !merged(d) || end != 101 || high < 71 || high > end {
					t.Fatalf("merged %v, cluster fence %d, own fence %d: the test no longer tests what it says", merged(d), end, high)
				}
				closeNode(t, tail)
				if end, high := mine.end(t, "order"), a.Mark("order").High; end < high {
					t.Errorf("the cluster fence holds %d, and a node that has merged its marks holds numbers up to %d", end, high)
				}
				ids.issueOn(t, s, f, 100)
			})
		})
	}
}
