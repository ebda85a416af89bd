package segment_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// TestSuspicionOutlivesTheProcess: the refused range has moved the row, so the next process would
// be offered numbers of another node that lie above all that it knows.
func TestSuspicionOutlivesTheProcess(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		s, mine, _ := offeredBelow(t, d)
		killed := d.copy()

		a := node(t, s, killed, degraded(mine, nil))
		refuses(t, a, leaf.ErrNotReady)
		if at := s.maxID(t, "order"); at != 61 {
			t.Errorf("the row is at %d, want 61, where the refused range ends", at)
		}
		latchesByTheFence(t, a, mine)
	})
}

// TestSuspicionOutlivesTheFence: the fence that could be compared with the row is given up in its outage, for none or for
// a new one. Nothing acquits the tag any more, and the numbers above the row are those of another node.
func TestSuspicionOutlivesTheFence(t *testing.T) {
	for _, c := range []struct {
		name string
		next fence.Cluster
		lost string // a file that an alarm says to delete
	}{
		{"none", nil, ""},
		{"a new one", memory.NewFence(), ""},
		{"a new one, and nothing says what was before", memory.NewFence(), "cluster-fence"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				s, _, _ := offeredBelow(t, d)
				killed := d.copy()
				delete(killed.files, c.lost)
				delete(killed.files, "recent.json") // the first process latches a tag that it preloads
				node(t, s, killed, degraded(c.next, nil))
				synctest.Wait()

				al := newAlarms()
				a := node(t, s, killed.copy(), degraded(c.next, al))
				for range 20 {
					_, err := a.Next(t.Context(), "order")
					wantErr(t, err, leaf.ErrRegress)
				}
				al.want(t, leaf.AlarmRegress+" order")
			})
		})
	}
}

// TestSuspicionOutlivesTheFenceOnAllNodes: no fence, or a new one without degrade, takes the place of the one that could be compared
// with the row. A new one does not hold the numbers above the row yet: the node that took them is still stopped. One that has never
// seen the tag hears of the regress, from one that has issued none of it either.
func TestSuspicionOutlivesTheFenceOnAllNodes(t *testing.T) {
	for name, next := range map[string]fence.Cluster{"none": nil, "a new one": memory.NewFence()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, d, ids := newStore(row(10)), memory.NewFence(), newDisk(), newLedger()
				mine := sharing(f)
				owner := node(t, s, nil, fenced("b", sharing(f), nil))
				ids.add(t, "b", drain(t, owner, "order", 100)...)
				synctest.Wait()
				s.set(func(s *store) {
					s.onReserve = func(context.Context, segment.Request, func() (segment.Reservation, error)) (segment.Reservation, error) {
						return segment.Reservation{}, errDown
					}
				})
				before := node(t, s, d, degraded(mine, nil))
				_, err := before.Next(t.Context(), "order") // reads the entry of b, and reserves nothing
				wantErr(t, err, leaf.ErrNotReady)
				mine.breakDown()
				s.heal()
				s.Put(segment.Row{Tag: "order", MaxID: 51, Step: 10})
				_, err = before.Next(t.Context(), "order")
				wantErr(t, err, leaf.ErrNotReady)
				closeNode(t, before)
				closeNode(t, owner)

				of := func(name string) segment.Config {
					if next == nil {
						return segment.Config{NodeID: name, FixedStep: true}
					}
					return fenced(name, next, nil)
				}
				d.set(func(d *disk) { delete(d.files, "recent.json") }) // it loads nothing before both are on the list, under one fence if there is one
				a, other := node(t, s, d.copy(), of("a")), node(t, s, nil, of("c"))
				time.Sleep(5 * time.Second)
				_, err = a.Next(t.Context(), "order")
				wantErr(t, err, leaf.ErrRegress)
				time.Sleep(5 * time.Second)
				got, err := other.Next(t.Context(), "order")
				if !errors.Is(err, leaf.ErrRegress) {
					t.Errorf("another node gets %d, %v; want ErrRegress", got, err)
				}
			})
		})
	}
}

// TestSuspectIsAcquitted: the row and the entry went down because a node gave numbers
// back. The node that suspected it goes on once the fence answers.
func TestSuspectIsAcquitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, mine, a, b, ids := seenInOutage(t, nil, 5)
		closeNode(t, b)
		useUp(t, a, ids)
		_, err := a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrExhausted)
		mine.heal()
		time.Sleep(10 * time.Second)
		ids.add(t, "a", drain(t, a, "order", 100)...)
		mine.breakDown()
		ids.add(t, "a", drain(t, a, "order", 100)...)
	})
}

// TestSuspectsHoldUpNobody: tags that wait for the fence, because their rows went back in its
// outage, do not keep the loads of another tag waiting.
func TestSuspectsHoldUpNobody(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		s, f := newStore(row(10)), memory.NewFence()
		mine := sharing(f)
		a, b := node(t, s, nil, degraded(mine, nil)), node(t, s, nil, fenced("b", sharing(f), nil))
		var suspects []string
		for i := range 100 {
			tag := fmt.Sprint("tag-", i)
			s.Put(segment.Row{Tag: tag, MaxID: 1, Step: 10})
			suspects = append(suspects, tag)
			next(t, a, tag)
			synctest.Wait()
			drain(t, b, tag, 25)
		}
		mine.breakDown()
		drain(t, a, "order", 50)
		mine.heal()
		time.Sleep(time.Second) // the merge reads the entries of b
		mine.breakDown()
		for _, tag := range suspects {
			s.Put(segment.Row{Tag: tag, MaxID: a.Mark(tag).High, Step: 10})
			go func() {
				for range 30 {
					_, _ = a.Next(t.Context(), tag)
				}
			}()
		}
		time.Sleep(2 * time.Second)
		for range 300 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := a.Next(ctx, "order"); err != nil {
				t.Fatal(err)
			}
			cancel()
			time.Sleep(10 * time.Millisecond)
		}
		waiting := 0
		for _, st := range a.Snapshot() {
			if st.Tag != "order" && st.Problem != "" {
				waiting++
			}
		}
		if waiting != len(suspects) {
			t.Errorf("%d tags wait for the fence, want %d", waiting, len(suspects))
		}
	})
}
