package segment_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRegressIsToldWhileTheDiskHangs: the node that is offered less stops the tag and tells
// the others at once, whatever its disk does.
func TestRegressIsToldWhileTheDiskHangs(t *testing.T) {
	for name, tables := range map[string]bool{"with a board": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d := newStore(row(10)), newDisk()
				var on segment.Store = s
				if !tables {
					on = struct{ segment.Store }{s}
				}
				a := node(t, on, d, segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second})
				b := node(t, on, nil, segment.Config{NodeID: "b", FixedStep: true, MaxWait: time.Second})
				drain(t, a, "order", 2)
				synctest.Wait()
				drain(t, b, "order", 2)
				time.Sleep(5 * time.Second)
				release := make(chan struct{})
				d.set(func(d *disk) { d.outside = func() error { <-release; return nil } })
				restored(s, 1)
				for range 10 { // of [1, 21): on the way the node asks for the next range
					if _, err := a.Next(t.Context(), "order"); err != nil {
						if !errors.Is(err, leaf.ErrRegress) {
							t.Fatal(err)
						}
						break // the refusal was quick
					}
				}
				time.Sleep(5 * time.Second)
				if m := a.Mark("order"); !m.Latched {
					t.Fatalf("mark %+v of the node that was offered less", m)
				}
				if id, err := a.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrRegress) {
					t.Errorf("the node that was offered less: ID %d, %v; want ErrRegress", id, err)
				}
				if id, err := b.Next(t.Context(), "order"); tables && !errors.Is(err, leaf.ErrRegress) {
					t.Errorf("the other node: ID %d, %v; want ErrRegress", id, err)
				}
				close(release)
				time.Sleep(5 * time.Second)
				crashed := newNode(t, on, d.copy(), segment.Config{NodeID: "a"})
				if m := crashed.Mark("order"); !m.Latched {
					t.Errorf("mark %+v on the disk", m)
				}
			})
		})
	}
}
