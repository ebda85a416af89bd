package segment_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRepairByTheMarginOfTheText: the database forgets all ranges, and three nodes are gone that were killed and started often
// before. Their IDs are in no table yet: between the first ID of one start and that of the next lies a range. A repair
// above the number that the error tells the operator to find repeats none of them, although the tag has a min-step far
// above what the node has without it.
func TestRepairByTheMarginOfTheText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const maxStep, minStep = 100, 1000
		s := newStore(row(10))
		config := func(id string) segment.Config { return segment.Config{NodeID: id, MaxStep: maxStep} }
		a := node(t, s, nil, config("a"))
		ids := newLedger()
		inTables := int64(0)
		for _, id := range drain(t, a, "order", 5) {
			ids.add(t, "a", id)
			inTables = max(inTables, id)
		}
		synctest.Wait()
		least := int64(minStep)
		if err := s.Update(t.Context(), "order", segment.Change{MinStep: &least}); err != nil {
			t.Fatal(err)
		}
		held := int64(0) // by clients, in no table
		starts := int64(1)
		disks := map[string]*disk{"b": newDisk(), "c": newDisk(), "d": newDisk()}
		for _, id := range append(slices.Repeat([]string{"b"}, 30), "c", "d") {
			gone := &board{store: s}
			ids.add(t, id, next(t, node(t, gone, disks[id], config(id)), "order"))
			synctest.Wait()
			gone.change(func(b *board) { b.onNotices = func() error { return errDown } })
			held++
			starts++
		}
		s.Put(withOptions(10, segment.Options{MinStep: minStep}))
		for err := error(nil); err == nil; { // until it latches
			var id int64
			if id, err = a.Next(t.Context(), "order"); err == nil {
				ids.add(t, "a", id)
				inTables = max(inTables, id)
			}
		}
		_, err := a.Repair(t.Context(), "order", 0)
		wantErr(t, err, segment.ErrSilentNodes)
		largest := int64(maxStep)
		if strings.Contains(err.Error(), "min-step") {
			largest = minStep
		}
		if !strings.Contains(err.Error(), "three times the largest range") {
			t.Fatal(err)
		}
		if !strings.Contains(err.Error(), "for each start of a node since that number was issued") {
			starts = 1
		}
		if _, err := a.Repair(t.Context(), "order", inTables+3*largest*starts+held); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		for _, id := range drain(t, a, "order", 6*minStep) {
			ids.add(t, "a", id)
		}
	})
}

// TestRepairByTheMarginBesideJava: Java servers double the step of a tag that is fixed here. One of them has issued an ID that is in
// no table yet when the database loses commits. A repair above the number that the text tells the operator to find does not repeat it.
func TestRepairByTheMarginBesideJava(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step, javaStep = 10, 10 << 6
		s, ids := newStore(row(step)), newLedger()
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
		ids.add(t, "a", drain(t, a, "order", 5)...)
		synctest.Wait() // the range that follows is loaded
		inTables := javaTakes(t, s, ids) - 1
		ids.add(t, "Java", inTables+javaStep) // of another server
		restored(s, 11)
		useUntil(t, a, ids, leaf.ErrRegress)
		const starts, held = 3, 1
		largest := int64(step)
		if strings.Contains(segment.LargestRange, "of a Java server 1,000,000") {
			largest = 1_000_000
		}
		if _, err := a.Repair(t.Context(), "order", inTables+3*largest*starts+held); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		ids.add(t, "a after the repair", drain(t, a, "order", 2*javaStep)...)
	})
}

// TestRepairByTheMarginInStrictOrder: the database forgets all ranges of a tag in strict order, and the node is gone that began
// one term after the other since the last ID that is in a table. Between the first ID of one term and that of the next lies a
// range. A repair above the number that the error tells the operator to find repeats none of them.
func TestRepairByTheMarginInStrictOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step, lease, changes = 10, 2 * time.Second, 25 // before the nodes read the rows again
		s, o := newStore(strictRow(step)), &terms{}
		config := func(id string) segment.Config { return segment.Config{NodeID: id, Terms: o.node(id), FixedStep: true} }
		gone := &board{store: s}
		a, b := node(t, s, nil, config("a")), node(t, gone, nil, config("b"))
		ids := newLedger()
		o.own("a")
		inTables := nextOf(t, a)
		ids.add(t, "a", inTables)
		began := time.Now()
		for range changes { // their IDs are with clients, in no table
			o.own("b")
			ids.add(t, "b", nextOf(t, b))
			time.Sleep(lease)
		}
		leases := int64(time.Since(began) / lease)
		gone.change(func(b *board) { b.onNotices = func() error { return errDown } })
		o.own("a")
		s.Put(strictRow(step))
		_, err := a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrRegress)
		_, err = a.Repair(t.Context(), "order", 0)
		wantErr(t, err, segment.ErrSilentNodes)
		times := int64(2) // for each node that ran
		if strings.Contains(err.Error(), "of a tag in strict order, for each order.lease since then (2 s)") {
			times += leases
		}
		if _, err := a.Repair(t.Context(), "order", inTables+3*step*times+changes); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		for _, id := range drain(t, a, "order", 3*step*changes) {
			ids.add(t, "a", id)
		}
	})
}
