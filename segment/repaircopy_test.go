package segment_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// TestRepairAsksACopyOfANode: two processes run with one node ID, because a machine was copied
// with its disk. A repair hears of the numbers of both, wherever it runs: the answer of one
// does not take the place of the answer of the other.
func TestRepairAsksACopyOfANode(t *testing.T) {
	for _, on := range []string{"another node", "the copy", "the original"} {
		for _, holder := range []string{"the original", "the copy"} {
			for i := range 6 {
				t.Run(fmt.Sprintf("on %s, %s holds the most, %d", on, holder, i), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := newStore(row(10))
						cfg := func(id string) segment.Config {
							return segment.Config{NodeID: id, FixedStep: true, MaxWait: time.Second}
						}
						nodes := map[string]*segment.Allocator{"another node": node(t, s, nil, cfg("a"))}
						nodes["the original"] = node(t, s, nil, cfg("b"))
						time.Sleep(time.Duration(i) * 7 * time.Second)
						nodes["the copy"] = node(t, s, nil, cfg("b"))
						drain(t, nodes["another node"], "order", 5)
						synctest.Wait()
						last := drain(t, nodes[holder], "order", 195)[194]
						synctest.Wait()
						time.Sleep(time.Duration(i) * 230 * time.Millisecond)
						restored(s, 51)
						if maxID, err := nodes[on].Repair(t.Context(), "order", 0); err != nil || maxID <= last {
							t.Errorf("Repair = %d, %v; %s issued up to %d", maxID, err, holder, last)
						}
					})
				})
			}
		}
	}
}

// TestCopyEntersOverAFirstEntry: the original has read the list when the copy enters, and
// writes its own entry after that. A repair some seconds later hears of the numbers of both.
func TestCopyEntersOverAFirstEntry(t *testing.T) {
	for i := range 12 {
		synctest.Test(t, func(t *testing.T) {
			b := &board{store: newStore(row(10))}
			cfg := func(id string) segment.Config {
				return segment.Config{NodeID: id, FixedStep: true, MaxWait: time.Second}
			}
			a, original := node(t, b.store, nil, cfg("a")), node(t, b, nil, cfg("b"))
			last := drain(t, original, "order", 195)[194]
			time.Sleep(30 * time.Second)
			reading := make(chan struct{})
			b.change(func(b *board) {
				b.onEnter = func() error {
					b.change(func(b *board) { b.onEnter = nil })
					close(reading)
					time.Sleep(time.Millisecond)
					return nil
				}
			})
			<-reading
			node(t, b.store, nil, cfg("b"))
			time.Sleep(5*time.Second + time.Duration(i)*170*time.Millisecond)
			restored(b.store, 51)
			if maxID, err := a.Repair(t.Context(), "order", 0); err != nil || maxID <= last {
				t.Errorf("Repair = %d, %v; the original issued up to %d", maxID, err, last)
			}
		})
	}
}

// TestCopiedNodeThatStartsAgain: of two processes with one node ID one is killed and starts
// again, each in turn. The list of nodes has two entries of them then, and the repair waits
// for no other.
func TestCopiedNodeThatStartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		var running [2]*board
		start := func(i int) *segment.Allocator {
			if last := running[i]; last != nil { // killed
				down := func() error { return errDown }
				last.change(func(b *board) { b.onEnter, b.onNotices = down, down })
			}
			running[i] = &board{store: s}
			return node(t, running[i], nil, segment.Config{NodeID: "b", FixedStep: true})
		}
		for _, i := range []int{0, 1, 0, 1, 1, 0, 0} {
			last := start(i)
			time.Sleep(90 * time.Second)
			nodes, err := s.Nodes(t.Context())
			if err != nil || running[1] != nil && (len(nodes) != 2 || nodes[0].Node != "b" || nodes[1].Node != "b-2" || nodes[0].Process <= nodes[1].Process) {
				t.Fatalf("after a start of process %d the list is %+v, %v", i, nodes, err)
			}
			if _, err := last.Repair(t.Context(), "order", 0); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestProcessBeforeIsNoCopy: the list of nodes shows the process of the node that ran before,
// whose clock was ahead, or whose entry comes back with a database that lost commits. The node
// takes its name back: no repair waits for a process that has ended.
func TestProcessBeforeIsNoCopy(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before time.Duration // how far ahead its clock was
		back   bool          // its entry comes back
	}{
		{"clock ahead", time.Hour, false},
		{"entry comes back", -time.Second, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(row(10))
				before := segment.Member{Node: "b", Process: time.Now().Add(tt.before).UnixNano()}
				enter := func() {
					if err := s.Enter(t.Context(), before); err != nil {
						t.Fatal(err)
					}
				}
				if !tt.back {
					enter()
				}
				b := node(t, s, nil, segment.Config{NodeID: "b"})
				time.Sleep(10 * time.Second)
				if tt.back {
					enter()
				}
				if _, err := b.Repair(t.Context(), "order", 0); err != nil {
					t.Error(err)
				}
				if nodes, err := s.Nodes(t.Context()); err != nil || len(nodes) != 1 || nodes[0].Node != "b" || nodes[0].Process <= before.Process {
					t.Errorf("the list is %+v, %v", nodes, err)
				}
			})
		})
	}
}

// TestNameOfACopyThatEnded: a process that ran under a second name of its node was killed, and a
// repair waits for that name. No node can be started under it. The error says so, and asks for a
// number. With that number the repair succeeds.
func TestNameOfACopyThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		b := node(t, s, nil, segment.Config{NodeID: "b"})
		if err := s.Enter(t.Context(), segment.Member{Node: "b-2", Process: 1}); err != nil {
			t.Fatal(err)
		}
		_, err := b.Repair(t.Context(), "order", 0)
		if want := "b-2 was a second process with the identity of b: if only one runs now, b-2 counts as gone for good. If one is gone for good"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Repair says %v, want %q in it", err, want)
		}
		if maxID, err := b.Repair(t.Context(), "order", 1000); err != nil || maxID <= 1000 {
			t.Errorf("Repair above 1000 = %d, %v", maxID, err)
		}
		if err := s.Enter(t.Context(), segment.Member{Node: "c", Process: 1}); err != nil {
			t.Fatal(err)
		}
		s.Leave(t.Context(), "b-2") //nolint:errcheck // of a store in memory
		if _, err := b.Repair(t.Context(), "order", 0); err == nil || strings.Contains(err.Error(), "second process") {
			t.Errorf("Repair with node c silent says %v", err)
		}
	})
}

// TestCopyIsStoppedForGood: the operator does what the warning says: stops the copy, and then
// restarts the original. When the original is killed later and starts again, no name stays
// behind that a repair waits for.
func TestCopyIsStoppedForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		cfg := segment.Config{NodeID: "b", FixedStep: true}
		var text bytes.Buffer
		warned := cfg
		warned.Logger = slog.New(slog.NewTextHandler(&text, nil))
		original := node(t, s, nil, warned)
		time.Sleep(time.Minute)
		second := node(t, s, nil, cfg)
		time.Sleep(2 * time.Minute)
		if err := second.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if do := "stop one of the two for good, or start it with a new, empty data directory, and then restart the other one"; !strings.Contains(text.String(), do) {
			t.Fatalf("the original warned %q, want %q", text.String(), do)
		}
		if err := original.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		restarted := &board{store: s}
		node(t, restarted, nil, cfg)
		time.Sleep(time.Minute)
		down := func() error { return errDown }
		restarted.change(func(b *board) { b.onEnter, b.onNotices = down, down }) // killed
		again := node(t, s, nil, cfg)
		time.Sleep(time.Minute)
		if nodes, err := s.Nodes(t.Context()); err != nil || len(nodes) != 1 || nodes[0].Node != "b" {
			t.Errorf("the list is %+v, %v", nodes, err)
		}
		if _, err := again.Repair(t.Context(), "order", 0); err != nil {
			t.Error(err)
		}
	})
}
