package segment_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// TestRebuiltMarkIsNoRange: leaf fence rebuild latches a tag at the max_id that it read. Before
// the node starts, the owner of the last range returns its unused IDs. The node merges its
// marks into the cluster fence. The read number is no range of the node (rule M): the other
// nodes must not take the lower row for a regress.
func TestRebuiltMarkIsNoRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, al := newStore(row(100)), memory.NewFence(), newAlarms()
		da := newDisk()
		a := node(t, s, da, fenced("a", sharing(f), nil))
		b := node(t, s, nil, fenced("b", sharing(f), nil))
		time.Sleep(time.Second)
		closeNode(t, a)
		drain(t, b, "order", 5)
		time.Sleep(time.Second)
		da.set(func(d *disk) { d.files["fence"] = d.files["fence"][:10]; delete(d.files, "cluster-fence") })
		if err := fence.Rebuild(da, "a", map[string]int64{"order": s.maxID(t, "order")}); err != nil {
			t.Fatal(err)
		}
		closeNode(t, b) // returns [6,101)
		if at := s.maxID(t, "order"); at != 6 {
			t.Fatalf("max_id is %d, want 6", at)
		}
		node(t, s, da, fenced("a", sharing(f), nil))
		time.Sleep(time.Second)
		c := node(t, s, nil, fenced("c", sharing(f), al))
		if id, err := c.Next(t.Context(), "order"); err != nil || id != 6 {
			t.Errorf("a node with a good fence got %d, %v; want 6", id, err)
		}
		al.want(t)
	})
}

// TestRebuiltMarkAfterARepairWithoutTheFence: a node without the cluster fence repairs the tag
// that a rebuild latched. The fence need not hold the max_id that the rebuild read.
func TestRebuiltMarkAfterARepairWithoutTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, al, da := newStore(row(100)), memory.NewFence(), newAlarms(), newDisk()
		a := node(t, s, da, fenced("a", sharing(f), nil))
		b := node(t, s, nil, fenced("b", sharing(f), nil))
		drain(t, b, "order", 5)
		time.Sleep(time.Second)
		closeNode(t, a)
		da.set(func(d *disk) { d.files["fence"] = d.files["fence"][:10]; delete(d.files, "cluster-fence") })
		if err := fence.Rebuild(da, "a", map[string]int64{"order": s.maxID(t, "order")}); err != nil {
			t.Fatal(err)
		}
		closeNode(t, b) // returns [6,101)
		a = node(t, s, da, fenced("a", sharing(f), al))
		c := node(t, s, nil, segment.Config{NodeID: "c", FixedStep: true})
		if _, err := c.Repair(t.Context(), "order", 0); err != nil {
			t.Fatal(err)
		}
		if id := next(t, a, "order"); id <= 101 {
			t.Errorf("ID %d after a repair above 101", id)
		}
		for _, line := range al.history() {
			if line != "+regress order" && line != "-regress order" {
				t.Error("alarm of a healthy cluster fence: ", line)
			}
		}
	})
}
