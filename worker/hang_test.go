package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// TestLeasedNumberNeedsNoDisk: T is all the memory that a leased number has.
func TestLeasedNumberNeedsNoDisk(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a")
		n.disk.set(func(d *disk) { d.hang = make(chan struct{}) })
		n.up().issue(5000)
		time.Sleep(time.Minute)
		n.issue(5000)
		if text := n.alarms.has(leaf.AlarmDisk); text != "" {
			t.Errorf("alarm %q", text)
		}
		n.stop()
		if f := n.disk.content(); f != nil {
			t.Errorf("the file holds %q", f)
		}
	})
}

// TestDiskHangs: a write that never ends raises an alarm within 2 s. IDs go on up to the
// t that is on the disk, and a stop ends with its deadline without a release: nobody
// knows what the disk will hold.
func TestDiskHangs(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a").up()
		n.issue(10)
		hang := make(chan struct{})
		inner, number := n.Status().Inner, n.Status().Number
		n.disk.set(func(d *disk) { d.hang = hang })
		time.Sleep(2*time.Second + time.Millisecond)
		if text := n.alarms.has(leaf.AlarmDisk); !strings.Contains(text, "has not answered") {
			t.Errorf("alarm %q", text)
		}
		if last := n.issue(10); millis(last) >= inner {
			t.Errorf("issued at %d, the disk holds t=%d", millis(last), inner)
		}
		time.Sleep(5 * time.Second)
		n.refuses(leaf.ErrNotReady)

		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		h := n.Holder
		n.Holder = nil
		if err := h.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 11*time.Second {
			t.Errorf("close after %v: %v", time.Since(begin), err)
		}
		if r := w.records.record(number); r.Released || r.Version == "" {
			t.Errorf("released, and the file may still claim the time up to T: %+v", r)
		}
		close(hang)
		n.disk.set(func(d *disk) { d.hang = nil })
		time.Sleep(time.Second)
		n.up()
		time.Sleep(4 * time.Second)
		n.issue(5000)
	})
}

// TestDiskHangsAtAStart: the disk does not answer when a node reads its file. An alarm says so, the
// node can be stopped, and it serves when the disk answers.
func TestDiskHangsAtAStart(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a").up()
		n.issue(10)
		n.stop()
		stuck := make(chan struct{})
		n.disk.set(func(d *disk) { d.reads = stuck })
		for _, stop := range []bool{true, false} {
			h, err := worker.New(worker.NewPool(w.records), n.disk, n.cfg)
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = h.Start(w.t.Context()) }() // it waits for the disk
			time.Sleep(2 * time.Second)
			if text := n.alarms.has(leaf.AlarmDisk); !strings.Contains(text, "has not answered to a read") {
				t.Errorf("alarm %q", text)
			}
			n.Holder = h
			if stop {
				n.stop()
			}
		}
		w.t.Cleanup(n.crash)
		close(stuck)
		time.Sleep(5 * time.Second)
		n.issue(10)
		if text := n.alarms.has(leaf.AlarmDisk); text != "" {
			t.Errorf("alarm %q although the disk answers", text)
		}
	})
}

// TestOldCopyOfAnIdleNode: a renewal records the t of the file and not what was issued,
// so that the old copy of a node that issued nothing meanwhile is seen.
func TestOldCopyOfAnIdleNode(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		a := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 }).up()
		time.Sleep(time.Minute)
		old := a.disk.content()
		time.Sleep(time.Minute - 500*time.Millisecond)
		last := a.issue(5000) // after the last renewal and before the next
		a.crash()
		a.disk.put(old)
		a.clock.step(-time.Minute)
		a.up()
		for range 90 {
			time.Sleep(time.Second)
			if id, err := a.Next(w.t.Context(), "k"); err == nil {
				if p := w.take(id, "a"); millis(p) <= millis(last) {
					t.Fatalf("issued at %d, and before at %d", millis(p), millis(last))
				}
			}
		}
	})
}

// TestQuietCoversTheCall: a claim that lives may have been renewed as late as the end of
// the call that creates the namespace.
func TestQuietCoversTheCall(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Fresh, c.Timeout = false, 40*time.Second })
		now := n.clock.Now()
		n.up()
		if got, want := w.records.record(n.claimed()).Floor, now.Add(40*time.Second+time.Minute+5*time.Second).UnixMilli(); got < want {
			t.Errorf("issues from %d on, want %d", got, want)
		}
	})
}

// sleepy is a registry on whose answer the machine of the claimer is suspended once.
type sleepy struct {
	*records

	sleep func()
}

func (s sleepy) Reserved(ctx context.Context) ([]worker.Adoptable, error) {
	s.sleep()
	return s.records.Reserved(ctx)
}

// TestQuietCoversASuspension: the deadline of the claim does not run while its machine is
// suspended, so a claim that lives may have been renewed as late as the machine's waking.
func TestQuietCoversASuspension(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Fresh = false })
		began := n.clock.Now()
		way := sleepy{w.records, sync.OnceFunc(func() { n.clock.suspend(30 * time.Second) })}
		h, err := worker.New(worker.NewPool(way), n.disk, n.cfg)
		if err != nil {
			t.Fatal(err)
		}
		n.Holder = h
		w.t.Cleanup(n.crash)
		if err := n.Start(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		want := began.Add(30*time.Second + 15*time.Second + time.Minute + 5*time.Second).UnixMilli()
		if got := w.records.namespace().IssueFrom; got < want {
			t.Errorf("issues from %d on, want %d", got, want)
		}
	})
}

// claimed returns the number that the node's claim has in the registry.
func (n *node) claimed() int64 {
	n.w.t.Helper()
	for number := n.cfg.Numbers.Lo; number < n.cfg.Numbers.Hi; number++ {
		if n.w.records.record(number).Address == n.cfg.Address {
			return number
		}
	}
	n.w.t.Fatal("no claim")
	return 0
}
