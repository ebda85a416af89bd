package segment_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

var errOtherCluster = &segment.ClusterError{Own: "one", Found: "two"}

// TestDatabaseOfAnotherCluster: the database becomes that of another cluster while the
// node runs. What is in memory is served, no load and no return goes there, and notices
// of the other cluster count for nothing. The node goes on when the database is its own.
func TestDatabaseOfAnotherCluster(t *testing.T) {
	for name, found := range map[string]struct{ bySync, byLoad bool }{
		"a load finds it": {false, true},
		"a sync finds it": {true, false},
		"both find it":    {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { othersDatabase(t, found.bySync, found.byLoad) })
		})
	}
}

func othersDatabase(t *testing.T, bySync, byLoad bool) {
	s, al, ids := fourTags(), newAlarms(), newLedger()
	a := node(t, s, nil, segment.Config{Alarms: al, FixedStep: true, MaxWait: 100 * time.Millisecond})
	ids.add(t, "before", drain(t, a, "a", 50)...)
	synctest.Wait()
	if bySync {
		time.Sleep(59 * time.Second)
	}
	s.set(func(s *store) {
		s.onBind = func(context.Context, func() error) error { return errOtherCluster }
		s.onReserve = func(context.Context, segment.Request, func() (segment.Reservation, error)) (segment.Reservation, error) {
			if !byLoad {
				t.Error("a load after the sync found it")
			}
			return segment.Reservation{}, errOtherCluster
		}
	})
	if bySync {
		time.Sleep(2 * time.Second)
	}
	for {
		id, err := a.Next(t.Context(), "a")
		if err != nil {
			wantErr(t, err, leaf.ErrNotReady)
			break
		}
		ids.add(t, "from memory", id)
	}
	if ids.len() < 100 {
		t.Errorf("%d IDs were served, although the node had loaded 100", ids.len())
	}
	_, err := a.Next(t.Context(), "b")
	wantErr(t, err, leaf.ErrNotReady)
	_, err = a.Repair(t.Context(), "a", 10_000)
	wantErr(t, err, leaf.ErrNotReady)
	al.want(t, "rule default")
	wantReady(t, a, false, "is the database of another cluster now, and no tag has IDs in memory")
	if err := s.Post(t.Context(), segment.Notice{Tag: "b", Regress: 5000, Repaired: 4000}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second)
	if m := a.Mark("b"); m.Latched || m.High > 4000 {
		t.Errorf("the mark is %+v after a notice of the other cluster", m)
	}
	s.heal()
	time.Sleep(2 * time.Minute)
	ids.add(t, "after", drain(t, a, "a", 150)...)
	al.want(t, "regress b") // the test posted it
}

// TestRowsOfAnotherCluster: the ID of the cluster was its own a moment ago, and a reading of rows is the first call that
// finds another one there, as where a pool has connections to both. The node heeds no row and no option there, and loads
// nothing until the database is its own.
func TestRowsOfAnotherCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		turn func(s *store)
		look func(t *testing.T, a *segment.Allocator)
	}{
		"all rows": {
			func(s *store) { s.onRows = func(context.Context) error { return errOtherCluster } },
			func(*testing.T, *segment.Allocator) { time.Sleep(time.Minute + 2*time.Second) },
		},
		"one row": {
			func(s *store) { s.onLookup = func(context.Context, string) error { return errOtherCluster } },
			func(t *testing.T, a *segment.Allocator) {
				_, err := a.Next(t.Context(), "a tag of theirs")
				wantErr(t, err, leaf.ErrNotReady)
			},
		},
		"a row that is read again": {
			func(s *store) { s.onLookup = func(context.Context, string) error { return errOtherCluster } },
			func(t *testing.T, a *segment.Allocator) { wantErr(t, a.Refresh(t.Context(), "a"), leaf.ErrNotReady) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, al := fourTags(), newAlarms()
				a := node(t, s, nil, segment.Config{Alarms: al, MaxWait: 100 * time.Millisecond})
				next(t, a, "a")
				synctest.Wait()
				s.set(tt.turn)
				tt.look(t, a)
				al.want(t, "rule default")
				next(t, a, "a") // from memory
				wantReady(t, a, true, "is the database of another cluster now; tags are served from memory")
				s.heal()
				time.Sleep(6 * time.Second) // not a sync interval: the name led elsewhere for a moment only
				al.want(t)
				next(t, a, "b")
			})
		})
	}
}

// TestBoardOfAnotherCluster: a look at the board is the first that finds the database of another
// cluster. The node heeds and tells nothing there, and loads nothing until the database is its own.
func TestBoardOfAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, al := fourTags(), newAlarms()
		a := node(t, s, nil, segment.Config{NodeID: "a", Alarms: al, MaxWait: 100 * time.Millisecond})
		next(t, a, "a")
		synctest.Wait()
		s.set(func(s *store) {
			s.onNotices = func() error { return errOtherCluster }
			s.onBind = func(context.Context, func() error) error { return errOtherCluster }
		})
		time.Sleep(3 * time.Second)
		al.want(t, "rule default")
		next(t, a, "a") // from memory
		_, err := a.Next(t.Context(), "b")
		wantErr(t, err, leaf.ErrNotReady)
		s.heal()
		time.Sleep(6 * time.Second) // not a sync interval: the name led elsewhere for a moment only
		al.want(t)
		next(t, a, "b")
	})
}

// TestQuestionsLeftBesideAnotherCluster: the database becomes that of another cluster while the node has more questions to
// answer than one look has time for. The node does not look again and again without a pause, which would never end here.
func TestQuestionsLeftBesideAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, al, answers := newStore(row(10)), newAlarms(), atomic.Int64{}
		slow := &board{store: s, onAnswer: func(segment.Answer) error {
			answers.Add(1)
			time.Sleep(time.Second)
			return nil
		}}
		node(t, slow, nil, segment.Config{NodeID: "a", Alarms: al, SyncInterval: time.Second})
		for i := range 200 {
			if err := s.Post(t.Context(), segment.Notice{Tag: fmt.Sprint("tag", i), Asked: 1}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second)
		s.set(func(s *store) { s.onBind = func(context.Context, func() error) error { return errOtherCluster } })
		time.Sleep(20 * time.Second)
		al.want(t, "rule default")
		if n := answers.Load(); n == 0 || n >= 200 {
			t.Errorf("%d answers, want some of 200", n)
		}
	})
}

// TestStartHeedsTheBoardAfterAnotherCluster: a node starts while its database is away, and finds
// the database of another cluster before its own. It loads nothing
// there before it has read the board.
func TestStartHeedsTheBoardAfterAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, al := fourTags(), newAlarms()
		s.breakDown()
		a := node(t, s, nil, segment.Config{NodeID: "a", Alarms: al, MaxWait: 100 * time.Millisecond})
		s.set(func(s *store) {
			s.onBind = func(context.Context, func() error) error { return errOtherCluster }
		})
		time.Sleep(time.Minute)
		al.want(t, "rule default")
		if err := s.Post(t.Context(), segment.Notice{Tag: "a", Regress: 5000}); err != nil {
			t.Fatal(err)
		}
		s.heal()
		s.set(func(s *store) { s.onNotices = func() error { return errDown } })
		for i := range 1400 {
			time.Sleep(100 * time.Millisecond)
			if i == 700 {
				s.heal()
			}
			if id, err := a.Next(t.Context(), "a"); err == nil {
				t.Fatalf("the node issued %d of a tag that is stopped", id)
			}
		}
		al.want(t, "regress a")
	})
}

// TestStartOnTheDatabaseOfAnotherCluster: the first contact finds the database of another
// cluster. The start is refused, and says what to do; trying again would not help.
func TestStartOnTheDatabaseOfAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fourTags()
		s.set(func(s *store) {
			s.onBind = func(context.Context, func() error) error { return errOtherCluster }
		})
		a := newNode(t, s, nil, segment.Config{})
		err := a.Start(t.Context())
		if _, ok := errors.AsType[*segment.ClusterError](err); !ok {
			t.Fatalf("Start = %v; want a *ClusterError", err)
		}
		for _, want := range []string{`store "default"`, "cluster_id two", "to the database of cluster one", "start it with a new data directory"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Start = %v; want %q", err, want)
			}
		}
	})
}
