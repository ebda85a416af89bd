package segment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

// TestTagOfNoStore: a tag that no rule gives to a store is unknown to every method.
func TestTagOfNoStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := []segment.TagRule{{Pattern: "a*", Store: "a"}, {Pattern: "b*", Store: "b"}}
		router, err := segment.NewRouter([]segment.NamedStore{{Name: "a", Store: newStore()}, {Name: "b", Store: newStore()}}, rules)
		if err != nil {
			t.Fatal(err)
		}
		a := newRouted(t, router, newDisk(), segment.Config{})
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantErr(t, a.Bound(t.Context(), "order"), leaf.ErrUnknownTag)
		wantErr(t, a.Refresh(t.Context(), "order"), leaf.ErrUnknownTag)
		_, err = a.Repair(t.Context(), "order", 1)
		wantErr(t, err, leaf.ErrUnknownTag)
		_, err = a.NextN(t.Context(), "order", 2)
		wantErr(t, err, leaf.ErrUnknownTag)
	})
}

// aliasing answers every look-up with the row of another tag, as a table with a
// collation that ignores case does.
type aliasing struct{ *store }

func (s aliasing) Lookup(ctx context.Context, _ string) (segment.Row, error) {
	return s.store.Lookup(ctx, "order")
}

// TestAliasedTag: a driver that breaks rule K does not make two tags one.
func TestAliasedTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := node(t, aliasing{newStore(row(10))}, nil, segment.Config{})
		_, err := a.Next(t.Context(), "ORDER")
		wantErr(t, err, leaf.ErrUnknownTag)
		if id := next(t, a, "order"); id != 1 {
			t.Errorf("first ID %d, want 1", id)
		}
	})
}

// TestBoundWaitsForTheFirstContact: a change of a tag that comes right after the start of the node
// waits for the database, as long as a load may take.
func TestBoundWaitsForTheFirstContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		slow := time.Second
		s.onRows = func(context.Context) error { time.Sleep(slow); return nil }
		a := newNode(t, s, nil, segment.Config{LoadTimeout: 2 * time.Second})
		go func() { _ = a.Start(t.Context()) }()
		ctx, cancel := context.WithTimeout(t.Context(), slow/2)
		defer cancel()
		wantErr(t, a.Bound(ctx, "order"), context.DeadlineExceeded)
		if err := a.Bound(t.Context(), "order"); err != nil {
			t.Errorf("Bound = %v while the first reading lasts", err)
		}
		wantErr(t, a.Start(t.Context()), leaf.ErrConflict)
	})
}

// TestBoundWaitsForTheNextContact: where the first contact failed, such a change waits for the one after it, and where the
// database is another cluster's for none.
func TestBoundWaitsForTheNextContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		why := errors.New("no session in time")
		s.onBind = func(_ context.Context, do func() error) error {
			if err := why; err != nil {
				why = nil
				return err
			}
			return do()
		}
		a := newNode(t, s, nil, segment.Config{})
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := a.Bound(t.Context(), "order"); err != nil {
			t.Errorf("Bound = %v after a contact that failed", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		s.onBind = func(context.Context, func() error) error { return &segment.ClusterError{Own: "ours", Found: "theirs"} }
		a := newNode(t, s, nil, segment.Config{})
		if err := a.Start(t.Context()); err == nil {
			t.Error("started on the database of another cluster")
		}
		began := time.Now()
		wantErr(t, a.Bound(t.Context(), "order"), leaf.ErrNotReady)
		if waited := time.Since(began); waited > 0 {
			t.Errorf("waited %v for the right database", waited)
		}
	})
}

// TestRepairWaitsForTheFirstContact: so does a repair that comes right after the start of the node.
func TestRepairWaitsForTheFirstContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		s.onBind = func(_ context.Context, do func() error) error { time.Sleep(time.Second); return do() }
		a := newNode(t, s, nil, segment.Config{LoadTimeout: 2 * time.Second})
		go func() { _ = a.Start(t.Context()) }()
		synctest.Wait()
		if _, err := a.PlanRepair(t.Context(), "order", 0); err != nil {
			t.Errorf("PlanRepair = %v while the first reading lasts", err)
		}
	})
}

// TestViewOfAStoreThatIsDown: the status and the snapshot name what does not answer, in
// the order of the names, and management commands are told.
func TestViewOfAStoreThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10), segment.Row{Tag: "cart", MaxID: 1, Step: 10}, segment.Row{Tag: "a", MaxID: 1, Step: 10},
			segment.Row{Tag: "idle", MaxID: 1, Step: 10}, segment.Row{Tag: "idle too", MaxID: 1, Step: 10})
		a := newNode(t, s, nil, segment.Config{FixedStep: true, MaxWait: time.Second})
		wantErr(t, a.Bound(t.Context(), "order"), leaf.ErrNotReady)
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := a.Bound(t.Context(), "order"); err != nil {
			t.Errorf("Bound = %v after the start", err)
		}
		if name := a.Tag("order").Name(); name != "order" {
			t.Errorf("the handle of order is called %q", name)
		}
		drain(t, a, "order", 1)
		drain(t, a, "cart", 1)
		synctest.Wait()
		s.breakDown()
		for {
			if _, err := a.Next(t.Context(), "order"); err != nil {
				wantErr(t, err, leaf.ErrExhausted)
				break
			}
		}
		wantErr(t, a.Refresh(t.Context(), "order"), leaf.ErrNotReady)
		time.Sleep(2 * time.Minute) // a sync
		if st := a.Status(); !st.Ready || !slices.Contains(st.Reasons, `the list of tags of store "default" cannot be read`) {
			t.Errorf("status %+v", st)
		}
		var seen []string
		for _, tag := range a.Snapshot() {
			seen = append(seen, tag.Tag+" "+tag.Problem)
		}
		if want := []string{"cart ", "order not_ready"}; !slices.Equal(seen, want) {
			t.Errorf("snapshot %q, want %q", seen, want)
		}

		// Two rows go at once.
		s.heal()
		if err := errors.Join(s.Delete(t.Context(), "cart"), s.Delete(t.Context(), "a")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		for _, tag := range []string{"cart", "a"} {
			_, err := a.Next(t.Context(), tag)
			wantErr(t, err, leaf.ErrUnknownTag)
		}
		next(t, a, "order")
	})
}

// TestMissesAreBounded: what is remembered of tags that do not exist does not
// grow for ever, and forgetting it changes no answer.
func TestMissesAreBounded(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		a := node(t, newStore(row(10)), nil, segment.Config{})
		for i := range 10_100 {
			_, err := a.NextN(t.Context(), fmt.Sprint("nobody-", i), 1)
			wantErr(t, err, leaf.ErrUnknownTag)
		}
		_, err := a.Next(t.Context(), "nobody-0")
		wantErr(t, err, leaf.ErrUnknownTag)
		next(t, a, "order")
	})
}

// heldLookup is a store whose answer to one Lookup comes late.
type heldLookup struct {
	*store

	read, release chan struct{}
}

func (h heldLookup) Lookup(ctx context.Context, tag string) (segment.Row, error) {
	row, err := h.store.Lookup(ctx, tag)
	select {
	case <-h.read:
	default:
		close(h.read)
		<-h.release
	}
	return row, err
}

// readings are the ways in which a node reads one row. A tag that was there at its start is read by a command, and one that was
// not by the first call.
var readings = map[string]struct {
	known bool
	read  func(*segment.Allocator) error
}{
	"a command":      {true, func(a *segment.Allocator) error { return a.Refresh(context.Background(), "order") }},
	"the first call": {false, func(a *segment.Allocator) error { _, err := a.Next(context.Background(), "order"); return err }},
}

// TestOlderReadingComesLast: a row that was read before a tag was put into strict order comes after a reading of all rows that
// shows the change. The tag stays in strict order.
func TestOlderReadingComesLast(t *testing.T) {
	for name, reads := range readings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := heldLookup{newStore(), make(chan struct{}), make(chan struct{})}
				if reads.known {
					h.Put(row(10))
				}
				a := node(t, h, nil, segment.Config{SyncInterval: 10 * time.Second, LoadTimeout: time.Minute, MaxWait: time.Minute})
				h.Put(row(10))
				done := make(chan struct{})
				go func() {
					_ = reads.read(a) // the tag may be in strict order by then
					close(done)
				}()
				<-h.read
				h.Put(strictRow(10))
				time.Sleep(11 * time.Second)
				if !a.Strict("order") {
					t.Fatal("the reading of all rows has not shown the change: the test no longer tests what it says")
				}
				close(h.release)
				<-done
				synctest.Wait()
				if !a.Strict("order") {
					t.Error("the tag is in plain order again")
				}
			})
		})
	}
}

// heldRows is heldLookup whose first answer to Rows behind that Lookup comes late, too.
type heldRows struct {
	heldLookup

	rows, releaseRows chan struct{}
}

func (h heldRows) Rows(ctx context.Context) ([]segment.Row, error) {
	all, err := h.store.Rows(ctx)
	select {
	case <-h.rows:
	default:
		select {
		case <-h.read:
			close(h.rows)
			<-h.releaseRows
		default: // before the Lookup
		}
	}
	return all, err
}

// TestReadingThatBeganLaterCounts: a row is read before a tag is put into strict order, and the answer comes while all rows are
// being read, which began later. What these show counts.
func TestReadingThatBeganLaterCounts(t *testing.T) {
	for name, reads := range readings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := heldRows{heldLookup{newStore(), make(chan struct{}), make(chan struct{})}, make(chan struct{}), make(chan struct{})}
				if reads.known {
					h.Put(row(10))
				}
				a := node(t, h, nil, segment.Config{SyncInterval: 10 * time.Second, LoadTimeout: time.Minute, MaxWait: time.Minute})
				h.Put(row(10))
				done := make(chan error)
				go func() { done <- reads.read(a) }()
				<-h.read
				h.Put(strictRow(10))
				<-h.rows
				close(h.release)
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				close(h.releaseRows)
				synctest.Wait()
				if !a.Strict("order") {
					t.Error("the tag is in plain order until all rows are read again")
				}
			})
		})
	}
}

// TestOlderReadingOfADeletedTag: a command reads a row, which is then deleted and made again in strict order. What the command
// has read comes last, and does not count.
func TestOlderReadingOfADeletedTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := heldLookup{newStore(row(10)), make(chan struct{}), make(chan struct{})}
		a := node(t, h, nil, segment.Config{LoadTimeout: time.Minute})
		done := make(chan error)
		go func() { done <- a.Refresh(context.Background(), "order") }()
		<-h.read
		if err := h.Delete(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		if err := a.Refresh(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		h.Put(strictRow(10))
		close(h.release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if !a.Strict("order") {
			t.Error("the tag is in plain order")
		}
	})
}
