package segment_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// A program that has taken IDs to give them out later learns when the node drops what it holds of the tag.
func TestDrops(t *testing.T) {
	for name, happens := range map[string]func(t *testing.T, s *store, a *segment.Allocator){
		"repair": func(t *testing.T, _ *store, a *segment.Allocator) {
			if _, err := a.Repair(t.Context(), "order", 1000); err != nil {
				t.Fatal(err)
			}
		},
		"another rule": func(_ *testing.T, s *store, _ *segment.Allocator) {
			foreign(s, true)
			time.Sleep(2 * time.Minute)
		},
		"deleted": func(_ *testing.T, s *store, _ *segment.Allocator) {
			s.Remove("order")
			time.Sleep(2 * time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(row(10), segment.Row{Tag: "other", MaxID: 1, Step: 10})
				a := node(t, s, nil, segment.Config{MaxWait: time.Second, FixedStep: true, SyncInterval: time.Minute})
				drops := a.Drops("order")
				drain(t, a, "order", 100)
				next(t, a, "other")
				time.Sleep(2 * time.Minute)
				before, other := drops.Count(), a.Drops("other").Count()
				if before != 0 {
					t.Errorf("%d drops, and nothing happened", before)
				}
				happens(t, s, a)
				if a.Drops("order") != drops || drops.Count() == before {
					t.Error("not counted")
				}
				if name != "another rule" && a.Drops("other").Count() != other {
					t.Error("counted for another tag")
				}
			})
		})
	}
}

// A drop is counted after the chunk is shut. A program that had read the new count before could take IDs from the chunk,
// and would give them out for good.
func TestDropIsCountedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := node(t, newStore(row(10)), nil, segment.Config{MaxWait: time.Second, FixedStep: true})
		drops := a.Drops("order")
		next(t, a, "order")
		during := int64(-1)
		defer segment.SetDuringShut(func() { during = drops.Count() })()
		if _, err := a.Repair(t.Context(), "order", 1000); err != nil {
			t.Fatal(err)
		}
		if during != 0 || drops.Count() == 0 {
			t.Errorf("the count is %d while the chunk can be taken from, and %d at the end", during, drops.Count())
		}
	})
}
