package segment_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRegressBesideALostDirectory: a node has stopped cleanly, and its data directory is gone, as in
// a container without a volume. A backup is put back. The operator does what the alarm of another
// node says, and no number repeats: that alone knows of a directory that nobody can ask.
func TestRegressBesideALostDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ids, al := newStore(row(10)), newLedger(), newAlarms()
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true, Alarms: al})
		ids.add(t, "a", drain(t, a, "order", 5)...)
		synctest.Wait() // the range that follows is loaded
		b := node(t, s, nil, segment.Config{NodeID: "b", FixedStep: true})
		inTables := int64(0)
		for _, id := range drain(t, b, "order", 200) {
			ids.add(t, "b", id)
			inTables = max(inTables, id)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		restored(s, 11)
		useUntil(t, a, ids, leaf.ErrRegress)
		above := int64(0)
		if strings.Contains(al.do(leaf.AlarmRegress, "order"), "If a node is gone with its data directory, run: leaf tag repair TAG --above NUMBER") {
			above = inTables + 3*10
		}
		if _, err := a.Repair(t.Context(), "order", above); err != nil {
			t.Fatal(err)
		}
		ids.add(t, "a after the repair", drain(t, a, "order", 300)...)
	})
}

// TestRestoredRowThatNobodyMisses: the row of the backup lies above all that one node took, and below
// what another one took, which loads nothing yet. So neither latches. As docs/OPERATIONS.md says, the
// tag is repaired before clients come: no number repeats.
func TestRestoredRowThatNobodyMisses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ids := newStore(row(10)), newLedger()
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
		b := node(t, s, nil, segment.Config{NodeID: "b", FixedStep: true})
		ids.add(t, "a", drain(t, a, "order", 1)...)
		ids.add(t, "b", drain(t, b, "order", 200)...)
		synctest.Wait()
		restored(s, 91)
		time.Sleep(2 * time.Minute) // every node has read the rows
		if a.Mark("order").Latched || b.Mark("order").Latched {
			t.Error("a node latched the tag by itself: the document need not say this")
		}
		if _, err := a.Repair(t.Context(), "order", 0); err != nil {
			t.Fatal(err)
		}
		ids.add(t, "a after the repair", drain(t, a, "order", 100)...)
		ids.add(t, "b after the repair", drain(t, b, "order", 100)...)
	})
}
