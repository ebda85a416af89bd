package segment_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRepairOfNodesUnderOtherFences: a cluster fence excuses silent nodes only if all that
// they hold is in it. The node with the highest numbers is silent.
func TestRepairOfNodesUnderOtherFences(t *testing.T) {
	for _, c := range []struct {
		name    string
		silent  func(own *memory.Fence) segment.Config
		excused bool
	}{
		{"the same one", func(own *memory.Fence) segment.Config { return fenced("b", sharing(own), nil) }, true},
		{"none", func(*memory.Fence) segment.Config { return segment.Config{NodeID: "b", FixedStep: true} }, false},
		{"another one", func(*memory.Fence) segment.Config { return fenced("b", sharing(memory.NewFence()), nil) }, false},
		{"the same one, with degrade", func(own *memory.Fence) segment.Config {
			cfg := fenced("b", sharing(own), nil)
			cfg.Degrade = true
			return cfg
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, own := newStore(row(10)), memory.NewFence()
				mute := &board{store: s}
				a := node(t, s, nil, fenced("a", sharing(own), nil))
				b := node(t, mute, nil, c.silent(own))
				drain(t, a, "order", 5)
				synctest.Wait()
				last := drain(t, b, "order", 195)[194]
				time.Sleep(5 * time.Second)
				mute.change(func(b *board) {
					b.onNotices, b.onEnter = func() error { return errDown }, func() error { return errDown }
				})
				restored(s, 51)
				maxID, err := a.Repair(t.Context(), "order", 0)
				switch {
				case c.excused && (err != nil || maxID <= last):
					t.Errorf("Repair = %d, %v; b issued up to %d", maxID, err, last)
				case !c.excused && !errors.Is(err, segment.ErrSilentNodes):
					t.Errorf("Repair = %d, %v; b is silent and issued up to %d", maxID, err, last)
				}
			})
		})
	}
}

// TestRegressUnderAFence: where all nodes are under one cluster fence, what one of them
// refuses stops no other. A node that takes ranges without it is told, and stops.
func TestRegressUnderAFence(t *testing.T) {
	for _, c := range []struct {
		name  string
		other func(f *memory.Fence) segment.Config
		stops bool
	}{
		{"all nodes", func(f *memory.Fence) segment.Config { return fenced("b", sharing(f), nil) }, false},
		{"some nodes", func(*memory.Fence) segment.Config { return segment.Config{NodeID: "b", FixedStep: true} }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, d := newStore(row(1000)), memory.NewFence(), newDisk()
				a := node(t, s, d, fenced("a", sharing(f), nil))
				b := node(t, s, nil, c.other(f))
				drain(t, a, "order", 1)
				synctest.Wait()
				drain(t, b, "order", 1)
				time.Sleep(5 * time.Second)
				s.Put(segment.Row{Tag: "order", MaxID: 1, Step: 1000})
				useUntil(t, a, newLedger(), leaf.ErrRegress)
				for _, when := range []string{"after the regress", "after a restart of the node that saw it"} {
					time.Sleep(5 * time.Second)
					if _, err := b.Next(t.Context(), "order"); errors.Is(err, leaf.ErrRegress) != c.stops {
						t.Errorf("%s: the other node says %v", when, err)
					}
					closeNode(t, a)
					a = node(t, s, d, fenced("a", sharing(f), nil))
				}
			})
		})
	}
}

// TestBackToJavaUnderAFenceAsTheDocumentSays: the database has lost commits, and one node has latched the tag. The operator repairs on
// another node, as docs/MIGRATION.md says, stops all, and starts Java, which issues from the row. No number repeats.
func TestBackToJavaUnderAFenceAsTheDocumentSays(t *testing.T) {
	document, err := os.ReadFile("../docs/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(document), "## Back to Java")
	every := regexp.MustCompile(`^[^#]*With a cluster fence, repair\s+every tag`).MatchString(section)
	synctest.Test(t, func(t *testing.T) {
		s, f, ids := newStore(row(10)), memory.NewFence(), newLedger()
		a, b := node(t, s, nil, fenced("a", sharing(f), nil)), node(t, s, nil, fenced("b", sharing(f), nil))
		ids.add(t, "a", drain(t, a, "order", 200)...)
		synctest.Wait()
		restored(s, 11)
		useUntil(t, a, ids, leaf.ErrRegress)
		time.Sleep(5 * time.Second)
		if every || b.Mark("order").Latched {
			if _, err := b.Repair(t.Context(), "order", 0); err != nil {
				t.Fatal(err)
			}
		}
		closeNode(t, a)
		closeNode(t, b)
		row, err := s.Lookup(t.Context(), "order")
		if err != nil {
			t.Fatal(err)
		}
		for id := range row.Step {
			ids.add(t, "Java", row.MaxID+id)
		}
	})
}

// TestRegressOfATagThatANodeNeverServed: a node without numbers of its own refuses a range
// because the cluster fence holds more. A node that takes ranges without the fence is told,
// and stops.
func TestRegressOfATagThatANodeNeverServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, ids := newStore(row(10)), memory.NewFence(), newLedger()
		ids.add(t, "b", drain(t, node(t, s, nil, fenced("b", sharing(f), nil)), "order", 200)...)
		c := node(t, s, nil, segment.Config{NodeID: "c", FixedStep: true})
		a := node(t, s, nil, fenced("a", sharing(f), nil))
		time.Sleep(5 * time.Second)
		restored(s, 11)
		_, err := a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrRegress)
		time.Sleep(5 * time.Second)
		if id, err := c.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrRegress) {
			t.Errorf("the node without the fence issues %d, %v; b issued it before", id, err)
		}
	})
}

// TestRepairByANodeWithoutTheFence: a repair on a node without the cluster fence raises the
// marks of the nodes under it, and not the fence. That is no loss of the fence.
func TestRepairByANodeWithoutTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, al := newStore(row(10)), memory.NewFence(), newAlarms()
		a := node(t, s, nil, fenced("a", sharing(f), al))
		c := node(t, s, nil, segment.Config{NodeID: "c", FixedStep: true})
		drain(t, a, "order", 5)
		time.Sleep(5 * time.Second)
		if _, err := c.Repair(t.Context(), "order", 5000); err != nil {
			t.Fatal(err)
		}
		drain(t, a, "order", 50)
		time.Sleep(5 * time.Second)
		for _, line := range al.history() {
			t.Error("alarm of a healthy cluster fence: ", line)
		}
		space, _, err := f.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e, _, err := f.Read(t.Context(), space, "order")
		if err == nil {
			_, err = f.Swap(t.Context(), space, "order", &e, 5001) // it forgets what the node took after the repair
		}
		if err != nil {
			t.Fatal(err)
		}
		drain(t, a, "order", 50)
		if lines := al.history(); len(lines) == 0 {
			t.Error("no alarm of a cluster fence that forgot ranges")
		}
	})
}

// TestRepairNamesWhomItDoesNotReach: a repair does not wait for a silent node under the cluster fence, which goes on issuing
// what it holds from below. The plan says so: leaf import repairs a tag because another service has handed that out.
func TestRepairNamesWhomItDoesNotReach(t *testing.T) {
	for name, said := range map[string]int{"it does not answer": 0, "it answers, and does not hear of the repair": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f := newStore(row(100)), memory.NewFence()
				deaf := &board{store: s}
				a := node(t, s, nil, fenced("a", sharing(f), nil))
				b := node(t, deaf, nil, fenced("b", sharing(f), nil))
				drain(t, a, "order", 5)
				drain(t, b, "order", 5)
				time.Sleep(5 * time.Second)
				answers := 0
				down := func() error {
					if answers >= said {
						return errDown
					}
					return nil
				}
				deaf.change(func(b *board) {
					b.onNotices, b.onEnter = down, down
					b.onAnswer = func(segment.Answer) error { answers++; return nil }
				})
				plan, err := a.RepairByPlan(t.Context(), "order", 5000)
				if err != nil || !slices.Equal(plan.Untold, []string{"b"}) {
					t.Fatalf("a repair beside a silent node: %q, %v", plan.Untold, err)
				}
				if id := next(t, b, "order"); id > 5000 {
					t.Fatalf("the silent node issues %d: the test no longer tests what it says", id)
				}
				deaf.change(func(b *board) { b.onNotices, b.onEnter, b.onAnswer = nil, nil, nil })
				plan, err = a.RepairByPlan(t.Context(), "order", 0)
				if err != nil || len(plan.Untold) > 0 {
					t.Errorf("a repair beside nodes that answer: %q, %v", plan.Untold, err)
				}
				if id := next(t, b, "order"); id <= 5000 {
					t.Errorf("ID %d after a repair above 5000", id)
				}
			})
		})
	}
}
