package segment_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRepairPlan: a plan tells what the row and each node say and where IDs go on, and
// changes nothing. The repair that follows ends where the plan said.
func TestRepairPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		n := three(t, s)
		drain(t, n[1], "order", 5)
		drain(t, n[0], "order", 95)
		synctest.Wait()
		restored(s, 31)
		useUntil(t, n[0], newLedger(), leaf.ErrRegress)
		time.Sleep(5 * time.Second)
		row, end := s.maxID(t, "order"), n[0].Mark("order").High
		plan, err := n[1].PlanRepair(t.Context(), "order", 0)
		if err != nil {
			t.Fatal(err)
		}
		want := []segment.RepairNode{{Node: "b", End: end, State: "latched"}, {Node: "a", End: end, State: "latched"}, {Node: "c", End: end, State: "latched"}}
		if plan.Row != row || !slices.Equal(plan.Nodes, want) || plan.Posted != end || plan.Above != end || plan.First != end+1 || plan.Refused != "" {
			t.Errorf("plan %+v; want row %d, nodes %+v, above %d", plan, row, want, end)
		}
		for _, a := range n {
			if m := a.Mark("order"); !m.Latched || m.High != end || s.maxID(t, "order") != row {
				t.Errorf("a plan left row %d and mark %+v; want %d and a latch at %d", s.maxID(t, "order"), m, row, end)
			}
		}
		if maxID, err := n[2].Repair(t.Context(), "order", 0); err != nil || maxID != plan.First {
			t.Errorf("Repair = %d, %v; the plan said %d", maxID, err, plan.First)
		}
	})
}

// TestQuestionIsForgotten: what a plan or a refused repair asks leaves nothing on the board, of
// a name that never was a tag, and of a tag that is well. A later question has a larger number,
// although the clock of the node that asks is behind: an answer to the old one may be late.
func TestQuestionIsForgotten(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, a *segment.Allocator, tag string) error{
		"plan": func(t *testing.T, a *segment.Allocator, tag string) error {
			t.Helper()
			_, err := a.PlanRepair(t.Context(), tag, 0)
			return err
		},
		"repair that is refused": func(t *testing.T, a *segment.Allocator, tag string) error {
			t.Helper()
			if _, err := a.Repair(t.Context(), tag, 1); !errors.Is(err, leaf.ErrUnknownTag) && !errors.Is(err, leaf.ErrConflict) {
				return fmt.Errorf("Repair(%q): %w; want a refusal", tag, err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(row(10))
				n := three(t, s)
				drain(t, n[1], "order", 5)
				synctest.Wait()
				for _, tag := range []string{"never-there", "order"} {
					if err := do(t, n[0], tag); err != nil {
						t.Fatal(err)
					}
					if all, err := s.Notices(t.Context()); err != nil || len(all) > 0 {
						t.Errorf("%s left %+v on the board, %v", tag, all, err)
					}
				}
				if all, err := s.Answers(t.Context(), "never-there"); err != nil || len(all) > 0 {
					t.Errorf("answers %+v are left, %v", all, err)
				}
				ahead := time.Now().Add(time.Hour).UnixNano() // by a node's clock
				for _, err := range []error{
					s.Post(t.Context(), segment.Notice{Tag: "order", Asked: ahead}), s.Forget(t.Context(), "order", ahead), do(t, n[0], "order"),
				} {
					if err != nil {
						t.Fatal(err)
					}
				}
				if asked, err := s.Forgotten(t.Context()); err != nil || asked <= ahead {
					t.Errorf("the last question has the number %d, %v; want more than %d", asked, err, ahead)
				}
			})
		})
	}
}

// TestRepairPlanIsRefused: a plan that is refused names the nodes that do not answer, and
// what they answered before.
func TestRepairPlanIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		mute := &board{store: s}
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
		b := node(t, mute, nil, segment.Config{NodeID: "b", FixedStep: true})
		drain(t, b, "order", 95)
		synctest.Wait() // its next range is loaded
		if _, err := a.PlanRepair(t.Context(), "order", 0); err != nil {
			t.Fatal(err)
		}
		end := b.Mark("order").High
		mute.change(func(b *board) { b.onNotices = func() error { return errDown } })
		if err := s.Enter(t.Context(), segment.Member{Node: "c"}); err != nil { // it was killed before it could answer
			t.Fatal(err)
		}
		want := []segment.RepairNode{{Node: "a", State: "ok"}, {Node: "b", End: end, State: "silent"}, {Node: "c", State: "silent"}}
		plan, err := a.PlanRepair(t.Context(), "order", 0)
		if err != nil || !slices.Equal(plan.Nodes, want) || !strings.Contains(plan.Refused, ": b, c: ") || plan.Above != 0 || plan.First != 0 {
			t.Errorf("plan %+v, %v; want nodes %+v and a refusal that names b and c", plan, err, want)
		}
		plan, err = a.PlanRepair(t.Context(), "order", 5000)
		if err != nil || !slices.Equal(plan.Nodes, want) || plan.Refused != "" || plan.First != 5001 {
			t.Errorf("plan above 5000: %+v, %v", plan, err)
		}
		if err := s.Leave(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		want[1].State = "left"
		if plan, err = a.PlanRepair(t.Context(), "order", 5000); err != nil || !slices.Equal(plan.Nodes, want) {
			t.Errorf("plan without node b: %+v, %v", plan, err)
		}
	})
}
