package segment_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// TestDegrade: with the policy, ranges go on without the cluster fence, and when it
// answers again it holds what was taken meanwhile before anybody trusts it. A node
// that never served the tag then refuses the restored database.
func TestDegrade(t *testing.T) {
	for _, c := range []struct {
		name  string
		crash bool
		after func(f *shared) // how the fence is after the outage
	}{
		{"recovers", false, func(*shared) {}},
		{"restart in the outage", true, func(*shared) {}},
		{"was wiped in the outage", false, func(f *shared) { f.Wipe() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, d, ids, al := newStore(row(10)), sharing(memory.NewFence()), newDisk(), newLedger(), newAlarms()
				a := node(t, s, d, degraded(f, al))
				ids.add(t, "a", drain(t, a, "order", 50)...)
				synctest.Wait()
				before := f.end(t, "order")
				if !merged(d) {
					t.Fatal("not merged at the start")
				}
				f.breakDown()
				ids.add(t, "a", drain(t, a, "order", 200)...)
				al.want(t, "fence zk")
				if merged(d) {
					t.Error("IDs were served without the fence, and the disk does not know")
				}
				if f.end(t, "order") != before {
					t.Error("the test no longer tests what it says")
				}
				if st := a.Status(); !st.Ready || !strings.Contains(strings.Join(st.Reasons, " "), "own fence") {
					t.Errorf("status %+v", st)
				}
				if c.crash {
					d = d.copy()
					al = newAlarms()
					a = node(t, s, d, degraded(f, al))
					ids.add(t, "a", drain(t, a, "order", 20)...)
				}
				time.Sleep(time.Minute)
				f.heal()
				c.after(f)
				time.Sleep(time.Second)
				al.want(t)
				if end := f.end(t, "order"); end < a.Mark("order").High || !merged(d) {
					t.Errorf("cluster fence %d, own fence %+v, merged %v", end, a.Mark("order"), merged(d))
				}
				s.Put(segment.Row{Tag: "order", MaxID: before, Step: 10})
				fresh := node(t, s, nil, fenced("fresh", sharing(f.Fence), nil))
				_, err := fresh.Next(t.Context(), "order")
				wantErr(t, err, leaf.ErrRegress)
			})
		})
	}
}

// TestDegradeStartsWithADurableNote: if the disk cannot note that ranges will be
// missing in the fence, there are none.
func TestDegradeStartsWithADurableNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d, al := newStore(row(10)), sharing(memory.NewFence()), newDisk(), newAlarms()
		cfg := degraded(f, al)
		cfg.MaxWait = time.Second
		a := node(t, s, d, cfg)
		next(t, a, "order")
		d.set(func(d *disk) {
			d.onReplace = func(name string) error {
				if name == "cluster-fence" {
					return errDown
				}
				return nil
			}
		})
		f.breakDown()
		useUp(t, a, newLedger())
		al.want(t, "disk cluster-fence", "exhausted order", "fence zk")
		d.set(func(d *disk) { d.onReplace = nil })
		next(t, a, "order")
		al.want(t, "fence zk")
	})
}

// TestDegradeBesideADiskThatHangs: the note is not written and does not fail. The alarms come all
// the same, before there are any IDs again.
func TestDegradeBesideADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d, al := newStore(row(10)), sharing(memory.NewFence()), newDisk(), newAlarms()
		cfg := degraded(f, al)
		cfg.MaxWait = time.Second
		a := node(t, s, d, cfg)
		next(t, a, "order")
		written := make(chan struct{})
		write := sync.OnceFunc(func() { close(written) })
		defer write()
		d.set(func(d *disk) {
			d.onReplace = func(name string) error {
				if name == "cluster-fence" {
					<-written
				}
				return nil
			}
		})
		f.breakDown()
		useUp(t, a, newLedger())
		time.Sleep(2 * time.Second)
		al.want(t, "disk cluster-fence", "exhausted order", "fence zk")
		write()
		next(t, a, "order")
		al.want(t, "fence zk")
	})
}

// TestFenceIsBackBeforeTheDisk: a note that could not be written is not needed any more
// when the cluster fence answers again, and nor is its alarm.
func TestFenceIsBackBeforeTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d, al := newStore(row(10)), sharing(memory.NewFence()), newDisk(), newAlarms()
		cfg := degraded(f, al)
		cfg.MaxWait = time.Second
		a := node(t, s, d, cfg)
		next(t, a, "order")
		d.set(func(d *disk) {
			d.onReplace = func(name string) error {
				if name == "cluster-fence" {
					return errDown
				}
				return nil
			}
		})
		f.breakDown()
		useUp(t, a, newLedger())
		f.heal()
		time.Sleep(time.Second)
		next(t, a, "order")
		synctest.Wait()
		al.want(t)
		d.set(func(d *disk) { d.onReplace = nil })
	})
}

// TestDegradeAfterALoss: the fence lost an entry and then does not answer. Degraded
// ranges begin with the durable note all the same.
func TestDegradeAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d := newStore(row(10)), sharing(memory.NewFence()), newDisk()
		a := node(t, s, d, degraded(f, nil))
		next(t, a, "order")
		f.set(func(f *shared) {
			f.onRead = func(context.Context, string, func() (fence.Entry, bool, error)) (fence.Entry, bool, error) {
				f.breakDown()
				return fence.Entry{}, false, nil
			}
		})
		drain(t, a, "order", 50)
		if merged(d) {
			t.Error("IDs were served without the fence, and the disk does not know")
		}
		f.heal()
		time.Sleep(time.Second)
		if !merged(d) || f.end(t, "order") < a.Mark("order").High {
			t.Errorf("merged %v, cluster fence %d, own fence %+v", merged(d), f.end(t, "order"), a.Mark("order"))
		}
	})
}

// TestDegradedRangeUnderWay: a load that began in the outage ends after the fence
// answers again. Its range is in the fence before the fence is trusted.
func TestDegradedRangeUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d, ids := newStore(row(10)), sharing(memory.NewFence()), newDisk(), newLedger()
		f.breakDown()
		cfg := degraded(f, nil)
		cfg.LoadTimeout = time.Minute
		a := node(t, s, d, cfg)
		synctest.Wait()
		stuck, release := stuckOnce(s, nil)
		got := make(chan int64)
		go func() { got <- next(t, a, "order") }()
		<-stuck
		f.heal()
		time.Sleep(5 * time.Second)
		if merged(d) {
			t.Fatal("merged while a degraded load is under way")
		}
		close(release)
		ids.add(t, "a", <-got)
		synctest.Wait()
		if !merged(d) || f.end(t, "order") != a.Mark("order").High {
			t.Errorf("merged %v, cluster fence %d, own fence %+v", merged(d), f.end(t, "order"), a.Mark("order"))
		}
	})
}

// seenInOutage is a node a that has read in the cluster fence what another node b reserved. b has taken
// IDs then, and the fence does not answer to a any more.
func seenInOutage(t *testing.T, d *disk, taken int) (s *store, mine *shared, a, b *segment.Allocator, ids *ledger) {
	t.Helper()
	f := memory.NewFence()
	s, ids = newStore(row(10)), newLedger()
	mine = sharing(f)
	a = node(t, s, d, degraded(mine, nil))
	ids.add(t, "a", next(t, a, "order"))
	b = node(t, s, nil, fenced("b", sharing(f), nil))
	ids.add(t, "b", drain(t, b, "order", taken)...)
	synctest.Wait()
	s.set(func(s *store) { // a's load reads the entry of b, and reserves nothing
		s.onReserve = func(context.Context, segment.Request, func() (segment.Reservation, error)) (segment.Reservation, error) {
			return segment.Reservation{}, errDown
		}
	})
	ids.add(t, "a", next(t, a, "order"))
	synctest.Wait()
	mine.breakDown()
	s.heal()
	return s, mine, a, b, ids
}

// offeredBelow is a node, on the disk d, that was offered a range in an outage of the cluster fence,
// below the entry of another node that it had seen. It has refused it, and the row has moved to 61.
func offeredBelow(t *testing.T, d *disk) (s *store, mine *shared, a *segment.Allocator) {
	t.Helper()
	s, mine, a, _, ids := seenInOutage(t, d, 100)
	s.Put(segment.Row{Tag: "order", MaxID: 51, Step: 10})
	useUp(t, a, ids)
	return s, mine, a
}

// refuses tries again and again, with the pauses of a caller, and wants the same error each time.
func refuses(t *testing.T, a *segment.Allocator, want error) {
	t.Helper()
	for range 20 {
		_, err := a.Next(t.Context(), "order")
		wantErr(t, err, want)
		time.Sleep(10 * time.Second)
	}
}

// latchesByTheFence ends the outage of the fence, which shows that the tag went back.
func latchesByTheFence(t *testing.T, a *segment.Allocator, mine *shared) {
	t.Helper()
	mine.heal()
	time.Sleep(10 * time.Second)
	_, err := a.Next(t.Context(), "order")
	wantErr(t, err, leaf.ErrRegress)
}

// TestDegradedRespectsWhatWasSeen: in an outage a node still refuses what lies below
// the entry that it saw last, though it never reserved up to there itself. No retry
// moves the row past the entry: the tag waits for the fence, and latches then.
func TestDegradedRespectsWhatWasSeen(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		s, mine, a := offeredBelow(t, nil)
		if at := s.maxID(t, "order"); at != 61 {
			t.Fatalf("the row is at %d after the refused range, want 61", at)
		}
		loads := s.count()
		refuses(t, a, leaf.ErrExhausted)
		if at := s.maxID(t, "order"); at != 61 || s.count() != loads {
			t.Errorf("retries moved the row to %d with %d loads", at, s.count()-loads)
		}
		latchesByTheFence(t, a, mine)
	})
}

// TestDegradedRespectsWhatAMergeSaw: what a merge reads of an entry counts like what a
// load reads, in this process and in its next one, and outlives the tag's row.
func TestDegradedRespectsWhatAMergeSaw(t *testing.T) {
	for _, c := range []struct {
		name  string
		apart string // the tag of which a range is taken without the fence
		crash bool
		after func(s *store, a *segment.Allocator) // the merge
	}{
		{"in the process", "order", false, nil},
		{"of a tag whose entry it need not write", "cart", false, nil},
		{"at the start", "order", true, nil},
		{"and the row was re-created", "order", false, func(s *store, a *segment.Allocator) {
			_ = s.Delete(context.Background(), "order")
			_ = a.Refresh(context.Background(), "order") // the tag is gone
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, d, ids := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}), memory.NewFence(), newDisk(), newLedger()
				mine := sharing(f)
				a := node(t, s, d, degraded(mine, nil))
				ids.add(t, "a", next(t, a, "order"))
				synctest.Wait()
				mine.breakDown()
				took := drain(t, a, c.apart, 20)
				if c.apart == "order" {
					ids.add(t, "a", took...)
				}
				synctest.Wait()
				b := node(t, s, nil, fenced("b", sharing(f), nil))
				ids.add(t, "b", drain(t, b, "order", 100)...)
				synctest.Wait()
				if c.crash {
					d = d.copy()
				}
				mine.heal()
				if c.crash {
					a = node(t, s, d, degraded(mine, nil))
				}
				time.Sleep(time.Second)
				if !merged(d) {
					t.Fatal("not merged: the test no longer tests what it says")
				}
				mine.breakDown()
				time.Sleep(time.Second)
				if c.after != nil {
					c.after(s, a)
				}
				s.Put(segment.Row{Tag: "order", MaxID: a.Mark("order").High, Step: 10})
				if err := a.Refresh(t.Context(), "order"); err != nil {
					t.Fatal(err)
				}
				useUp(t, a, ids)
				if at := s.maxID(t, "order"); at != a.Mark("order").High+10 {
					t.Errorf("the row is at %d, want one refused range above %d", at, a.Mark("order").High)
				}
			})
		})
	}
}

// TestDegradeBesideAFenceThatCannotWrite: the fence answers, slowly, and refuses writes. The
// node has many tags, so a merge takes seconds, and no range is loaded meanwhile. The node
// finds out that a merge is in vain before it begins one.
func TestDegradeBesideAFenceThatCannotWrite(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		s, f := newStore(row(10)), sharing(memory.NewFence())
		a := node(t, s, nil, degraded(f, nil))
		for i := range 2000 {
			tag := fmt.Sprint("tag-", i)
			s.Put(segment.Row{Tag: tag, MaxID: 1, Step: 10})
			next(t, a, tag)
		}
		next(t, a, "order")
		synctest.Wait()
		f.breakDown()
		f.set(func(f *shared) {
			f.onOpen = nil
			f.onRead = func(_ context.Context, _ string, do func() (fence.Entry, bool, error)) (fence.Entry, bool, error) {
				time.Sleep(50 * time.Millisecond)
				return do()
			}
		})
		time.Sleep(time.Second)
		for range 1000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := a.Next(ctx, "order"); err != nil {
				t.Fatal(err)
			}
			cancel()
			time.Sleep(10 * time.Millisecond)
		}
		f.heal()
	})
}
