package segment_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// TestNothingToServeIsNotReady: a node that can load no range and has no ID in memory is not
// ready, whatever the reason, and an alarm says why. It recovers by itself, without a caller.
func TestNothingToServeIsNotReady(t *testing.T) {
	full := errors.New("no space left on device")
	hang := func(ctx context.Context, _ segment.Request, _ func() (segment.Reservation, error)) (segment.Reservation, error) {
		<-ctx.Done() // the deadline has passed
		return segment.Reservation{Step: 10}, ctx.Err()
	}
	var stuck chan struct{}
	for _, tt := range []struct {
		name  string
		tags  []string
		begin func(s *store, d *disk)
		end   func(s *store, d *disk)
		alarm string
	}{
		{
			"every write of the database hangs, and reads answer",
			[]string{"order", "cart", "user"},
			func(s *store, _ *disk) { s.set(func(s *store) { s.onReserve = hang }) },
			func(s *store, _ *disk) { s.set(func(s *store) { s.onReserve = nil }) },
			"store default",
		},
		{
			"the same with one tag",
			[]string{"order"},
			func(s *store, _ *disk) { s.set(func(s *store) { s.onReserve = hang }) },
			func(s *store, _ *disk) { s.set(func(s *store) { s.onReserve = nil }) },
			"store default",
		},
		{
			"the disk is full",
			[]string{"order", "cart"},
			func(_ *store, d *disk) {
				d.set(func(d *disk) {
					d.onWrite = func() error { return full }
					d.onReplace = func(string) error { return full }
				})
			},
			func(_ *store, d *disk) { d.set(func(d *disk) { d.onWrite, d.onReplace = nil, nil }) },
			"disk fence",
		},
		{
			"the disk hangs",
			[]string{"order", "cart"},
			func(_ *store, d *disk) {
				stuck = make(chan struct{})
				d.set(func(d *disk) { d.outside = func() error { <-stuck; return nil } })
			},
			func(_ *store, d *disk) {
				d.set(func(d *disk) { d.outside = nil })
				close(stuck)
			},
			"disk fence",
		},
	} {
		for _, stock := range []bool{false, true} {
			name := tt.name
			if stock {
				name += ", after the stock"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var rows []segment.Row
					for _, tag := range tt.tags {
						rows = append(rows, segment.Row{Tag: tag, MaxID: 1, Step: 10})
					}
					s, d, al := newStore(rows...), newDisk(), newAlarms()
					a := node(t, s, d, segment.Config{Alarms: al, MaxWait: time.Second, FixedStep: true})
					if stock {
						for _, tag := range tt.tags {
							drain(t, a, tag, 1)
						}
						synctest.Wait()
					}
					tt.begin(s, d)
					for range 20 { // callers come again and again
						for _, tag := range tt.tags {
							for {
								if _, err := a.Next(t.Context(), tag); err != nil {
									break
								}
							}
						}
					}
					if st := a.Status(); st.Ready || len(st.Reasons) == 0 {
						t.Errorf("ready %v, reasons %q", st.Ready, st.Reasons)
					}
					if code, subject, _ := strings.Cut(tt.alarm, " "); al.text(code, subject) == "" {
						t.Errorf("no alarm %s: %q", tt.alarm, al.history())
					}
					time.Sleep(time.Minute)
					tt.end(s, d)
					time.Sleep(30 * time.Second)
					if st := a.Status(); !st.Ready {
						t.Errorf("half a minute after the end: %q", st.Reasons)
					}
					for _, tag := range tt.tags {
						drain(t, a, tag, 1)
					}
				})
			})
		}
	}
}

// TestRowBelowZero: a row with a max_id below 0 is a row that went down. The node
// that took ranges of it latches the tag, on every node, and the repair that its alarm asks
// for is above all that was issued. A number typed by hand would repeat IDs.
func TestRowBelowZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, al, ids := newStore(row(10)), newAlarms(), newLedger()
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true, Alarms: al, MaxWait: time.Second})
		b := node(t, s, nil, segment.Config{NodeID: "b", FixedStep: true, MaxWait: time.Second})
		ids.add(t, "a", drain(t, a, "order", 15)...)
		synctest.Wait()
		s.Put(segment.Row{Tag: "order", MaxID: -5, Step: 10})
		for {
			id, err := a.Next(t.Context(), "order")
			if err != nil {
				break
			}
			ids.add(t, "a", id)
		}
		if al.text("regress", "order") == "" {
			t.Errorf("no alarm about a regress: %q", al.history())
		}
		time.Sleep(5 * time.Second)
		s.Put(segment.Row{Tag: "order", MaxID: 0, Step: 10}) // with SQL: the command refuses it
		if id, err := b.Next(t.Context(), "order"); err == nil {
			t.Errorf("b issued %d of a row that a number typed by hand put right", id)
		}
		if _, err := b.Repair(t.Context(), "order", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		ids.add(t, "b", drain(t, b, "order", 8)...)
		ids.add(t, "a", drain(t, a, "order", 8)...)
	})
}

// TestReadyBesideLockedRows: an open transaction locks two rows. A third one is free, so the
// node is ready, whether it used the third tag before or not.
func TestReadyBesideLockedRows(t *testing.T) {
	for name, used := range map[string]bool{"the third tag was used": true, "the third tag was not used": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var rows []segment.Row
				for _, tag := range []string{"a", "b", "c"} {
					rows = append(rows, segment.Row{Tag: tag, MaxID: 1, Step: 10})
				}
				s, al := newStore(rows...), newAlarms()
				a := node(t, s, nil, segment.Config{Alarms: al, MaxWait: time.Second, FixedStep: true})
				if used {
					drain(t, a, "c", 1)
				}
				s.set(func(s *store) {
					s.onReserve = func(ctx context.Context, r segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
						if r.Tag == "c" {
							return do()
						}
						<-ctx.Done()
						return segment.Reservation{Step: 10}, ctx.Err()
					}
				})
				for range 20 {
					for _, tag := range []string{"a", "b"} {
						if _, err := a.Next(t.Context(), tag); err == nil {
							t.Fatalf("an ID of %s", tag)
						}
					}
				}
				if st := a.Status(); !st.Ready || al.text("store", "default") != "" {
					t.Errorf("ready %v, reasons %q, alarms %q", st.Ready, st.Reasons, al.history())
				}
			})
		})
	}
}

// TestBlockedTagGoes: the disk is full when a range is loaded, and the tag that wanted it goes
// meanwhile. Once the disk is well the node is ready, without a caller.
func TestBlockedTagGoes(t *testing.T) {
	full := errors.New("no space left on device")
	for name, goes := range map[string]func(s *store){
		"the row is deleted":     func(s *store) { s.Remove("order") },
		"the row becomes unfit":  func(s *store) { s.Put(segment.Row{Tag: "order", MaxID: 1, Step: -1}) },
		"the row stays as it is": func(*store) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d := newStore(segment.Row{Tag: "cart", MaxID: 1, Step: 10}, row(10)), newDisk()
				a := node(t, s, d, segment.Config{MaxWait: time.Second, FixedStep: true, SyncInterval: 10 * time.Second})
				d.set(func(d *disk) {
					d.onWrite = func() error { return full }
					d.onReplace = func(string) error { return full }
				})
				if _, err := a.Next(t.Context(), "order"); err == nil {
					t.Fatal("an ID without a fence on the disk")
				}
				time.Sleep(10 * time.Second)
				goes(s)
				time.Sleep(2 * time.Minute)
				d.set(func(d *disk) { d.onWrite, d.onReplace = nil, nil })
				time.Sleep(time.Minute)
				if st := a.Status(); !st.Ready {
					t.Errorf("reasons %q", st.Reasons)
				}
			})
		})
	}
}
