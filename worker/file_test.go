package worker_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

const fileName = "worker.json"

// TestFileIsTorn: a file that lost or changed any byte is not used. With a registry
// the node starts all the same, at the registry's T; without one it does not start.
func TestFileIsTorn(t *testing.T) {
	var whole []byte
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a").up()
		n.issue(10)
		n.crash()
		whole = n.disk.content()
	})
	torn := [][]byte{append(slices.Clone(whole), 'x')}
	for i := range whole {
		torn = append(torn, whole[:i])
		if i%8 != 0 {
			continue
		}
		changed := slices.Clone(whole)
		changed[i] ^= 1
		torn = append(torn, changed)
	}
	for _, content := range torn {
		run(t, worker.Fixed, func(w *world) {
			n := w.node("a")
			n.disk.put(content)
			w.records.breakOff(true)
			n.up()
			n.says(leaf.ErrNotReady, fileName)
			w.records.breakOff(false)
			time.Sleep(2 * time.Second)
			n.issue(10)
			if f := n.disk.content(); bytes.Equal(f, content) {
				t.Errorf("the torn file stayed: %q", content)
			}
		})
	}
}

// TestFileOfAnotherNode: neither is a file that somebody else wrote, or another layout.
func TestFileOfAnotherNode(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*worker.Config)
		want   string
	}{
		{"node", func(c *worker.Config) { c.NodeID = "copy" }, `is of another node: "a", this one is "copy"`},
		{"namespace", func(c *worker.Config) { c.Namespace = "prod" }, `is of another namespace: "test", this one is "prod"`},
		{"layout", func(c *worker.Config) { c.Layout.Epoch += 1000 }, `is of another layout: "e1288834974657 `},
		{"layout", func(c *worker.Config) { c.Layout, c.Datacenter = snowflake.DC(), new(int64(3)) }, `datacenter=3"`},
		{"address", func(c *worker.Config) { c.Address = "z:1" }, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, worker.Fixed, func(w *world) {
				n := w.node("a").up()
				n.issue(10)
				n.crash()
				w.records.breakOff(true)
				tt.change(&n.cfg)
				n.up()
				time.Sleep(4 * time.Second) // until the file's t has passed
				n.says(leaf.ErrNotReady, tt.want)
			})
		})
	}
}

// TestFileIsFromTheFuture: a fixed number waits for the file's t.
func TestFileIsFromTheFuture(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a").up()
		n.issue(10)
		n.crash()
		n.clock.step(-5 * time.Minute)
		w.records.breakOff(true)
		n.up()
		n.says(leaf.ErrNotReady, "may be used from")
		time.Sleep(5*time.Minute + 4*time.Second)
		n.issue(5000)
	})
}

func TestStatic(t *testing.T) {
	static := func(n *node) (*worker.Holder, error) {
		n.w.t.Helper()
		n.cfg.Fresh = false
		h, err := worker.New(worker.NewStatic(3), n.disk, n.cfg)
		if err != nil {
			n.w.t.Fatal(err)
		}
		n.w.t.Cleanup(func() {
			if err := h.Close(n.w.t.Context()); err != nil && !errors.Is(err, n.w.t.Context().Err()) {
				n.w.t.Error(err)
			}
		})
		return h, h.Start(n.w.t.Context())
	}
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a")
		h, err := static(n)
		n.Holder = h
		if err != nil {
			t.Fatal(err)
		}
		n.refuses(leaf.ErrNotReady) // the number's last owner may be just gone
		time.Sleep(19 * time.Second)
		n.issue(5000)
		time.Sleep(time.Hour)
		n.issue(5000)
		n.crash()
		if h, err = static(n); err != nil {
			t.Fatal(err)
		}
		n.Holder = h
		time.Sleep(3 * time.Second)
		n.issue(5000)
		n.stop()
		n.disk.put(n.disk.content()[1:])
		if _, err := static(n); err == nil || !strings.Contains(err.Error(), "a static worker ID has no other memory. If no process uses it, and the clock of the node was never ahead of the present time, remove the file; the next start then waits 18s") {
			t.Errorf("damaged file: %v", err)
		}
		n.cfg.Numbers = leaf.Range{Lo: 0, Hi: 3}
		if _, err := static(n); err == nil {
			t.Error("number 3 of 0-2 is accepted")
		}
	})
}

// TestStaticIsRenumbered: a node whose static number was changed in the configuration does not
// start. The node that had the number before may not have been restarted yet.
func TestStaticIsRenumbered(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a")
		n.cfg.Fresh = false
		if err := n.start(worker.NewStatic(3)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(19 * time.Second)
		n.issue(100)
		n.stop()
		err := n.start(worker.NewStatic(2))
		if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "had the static worker ID 3 until now") || !strings.Contains(err.Error(), "stop every node that has 2") {
			t.Fatalf("another number: %v", err)
		}
		n.stop()
		if err := n.start(worker.NewStatic(3)); err != nil { // the file is as it was
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		n.issue(100)
		n.stop()
		n.disk.set(func(d *disk) { clear(d.files) })
		if err := n.start(worker.NewStatic(2)); err != nil {
			t.Fatal(err)
		}
		n.refuses(leaf.ErrNotReady) // its last owner may be just gone
		time.Sleep(19 * time.Second)
		n.issue(100)
	})
}

// TestStaticIsRenumberedAsTheTextSays: a node gets the static number of another one, whose clock was ahead. The operator does what
// the error says, and no ID repeats.
func TestStaticIsRenumberedAsTheTextSays(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		a, b := w.node("a"), w.node("b")
		a.cfg.Fresh, b.cfg.Fresh = false, false
		const ahead = 5 * time.Minute
		b.clock.step(ahead)
		for n, number := range map[*node]int64{a: 3, b: 2} {
			if err := n.start(worker.NewStatic(number)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(19 * time.Second)
		a.issue(100)
		last := millis(b.issue(100))
		a.stop()
		b.stop()
		err := a.start(worker.NewStatic(2))
		a.stop()
		if err != nil && strings.Contains(err.Error(), "compare their clocks with that of this node and wait for as long as they differ") {
			time.Sleep(ahead)
		}
		a.disk.set(func(d *disk) { clear(d.files) })
		if err := a.start(worker.NewStatic(2)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(19 * time.Second)
		if first := millis(a.issue(1)); first <= last {
			t.Errorf("issues at %d, and the node that had the number before has issued up to %d", first, last)
		}
	})
}

// TestStaticOfAnotherLayout: nothing but its file remembers the layout of a static number.
// Without the file the number would issue, with a later epoch, what it has issued before.
func TestStaticOfAnotherLayout(t *testing.T) {
	later := snowflake.Leaf()
	later.Epoch += (24 * time.Hour).Milliseconds()
	parts := snowflake.Parts{Unit: 1000, Worker: 3, Sequence: 7}
	id, err := snowflake.Leaf().Encode(parts)
	if again, laterErr := later.Encode(parts); err != nil || laterErr != nil || again != id {
		t.Fatalf("a day later the ID is %d, %v; it was %d, %v", again, laterErr, id, err)
	}
	for name, change := range map[string]func(*worker.Config){
		"layout":               func(c *worker.Config) { c.Layout = later },
		"layout and namespace": func(c *worker.Config) { c.Layout, c.Namespace = later, "other" },
		"layout and node":      func(c *worker.Config) { c.Layout, c.NodeID = later, "other" },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, worker.Fixed, func(w *world) {
				n := w.node("a")
				if err := n.start(worker.NewStatic(3)); err != nil {
					t.Fatal(err)
				}
				n.crash()
				was := n.cfg
				change(&n.cfg)
				err := n.start(worker.NewStatic(3))
				if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "set the layout back and keep the file, or give the IDs of the new one tables of their own and remove the file") {
					t.Errorf("start: %v", err)
				}
				n.stop()
				n.cfg = was // with the file, which knows what was issued
				if err := n.start(worker.NewStatic(3)); err != nil {
					t.Errorf("start with the layout set back: %v", err)
				}
			})
		})
	}
}

// TestDiskFails: what is not on the disk is not issued.
func TestDiskFails(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a").up()
		n.issue(10)
		full := errors.New("no space left on device")
		inner := n.Status().Inner
		n.disk.set(func(d *disk) { d.err = full })
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			if id, err := n.Next(w.t.Context(), "k"); err == nil {
				if p := w.take(id, "a"); millis(p) >= inner {
					t.Fatalf("issued at %d, the disk holds t=%d", millis(p), inner)
				}
			}
		}
		n.refuses(leaf.ErrNotReady)
		if text := n.alarms.has(leaf.AlarmDisk); !strings.Contains(text, "no space left") {
			t.Errorf("alarm %q", text)
		}
		n.disk.set(func(d *disk) { d.err = nil })
		time.Sleep(2 * time.Second)
		n.issue(1000)
		if text := n.alarms.has(leaf.AlarmDisk); text != "" {
			t.Errorf("alarm is still active: %s", text)
		}

		n.disk.set(func(d *disk) { d.err = full })
		bound := n.Status().Bound
		if err := n.Close(w.t.Context()); !errors.Is(err, full) {
			t.Errorf("close: %v", err)
		}
		if rec := w.records.record(n.cfg.Numbers.Lo + int64(0)); rec.Released || rec.Bound != 0 && rec.Bound < bound {
			t.Errorf("released although the file still claims the time up to T: %+v", rec)
		}
		n.Holder = nil
		n.disk.set(func(d *disk) { d.err = nil })

		m := w.node("b")
		m.disk.set(func(d *disk) { d.err = full })
		m.up()
		m.says(leaf.ErrNotReady, "no space left")
		m.disk.set(func(d *disk) { d.err = nil })
		time.Sleep(time.Second)
		m.issue(1000)
	})
}

// TestEndsAtT: while the registry is down, issuing ends at T.
func TestEndsAtT(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a").up()
		w.records.breakOff(true)
		time.Sleep(9 * time.Minute)
		n.issue(10)
		time.Sleep(2 * time.Minute)
		n.refuses(leaf.ErrNotReady)
	})
}

func TestKeepOnStop(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.KeepOnStop, c.Numbers.Hi = true, 1 }).up()
		n.issue(5000)
		n.stop()
		w.records.breakOff(true)
		n.up()
		time.Sleep(4 * time.Second) // until the file's t has passed
		n.issue(5000)
		n.crash()
		w.records.breakOff(false)
		w.node("b", func(c *worker.Config) { c.Numbers.Hi = 1 }).up().says(leaf.ErrNotReady, "all 1 worker IDs 0 to 0 are taken")
	})
}

func TestCloseInEveryState(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a")
		h, err := worker.New(worker.NewPool(w.records), n.disk, n.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Close(w.t.Context()); err != nil { // never started
			t.Error(err)
		}

		w.records.breakOff(true)
		n.up() // refused
		n.stop()
		w.records.breakOff(false)

		one := func(c *worker.Config) { c.Numbers.Hi = 1 }
		b := w.node("b", one).up()
		b.issue(10)
		b.stop()
		c := w.node("c", one)
		c.clock.step(-time.Minute)
		c.up()
		if st := c.Status(); st.State != worker.Waiting {
			t.Errorf("status %+v", st)
		}
		floor := w.records.record(0).Floor
		c.stop() // while it waits for its floor: the number goes back as it was
		if rec := w.records.record(0); !rec.Released || rec.Bound != floor {
			t.Errorf("record %+v, want released at %d", rec, floor)
		}
		if _, err := c.cfg, h.Close(w.t.Context()); err != nil { // a second time
			t.Error(err)
		}
		if _, err := h.Next(w.t.Context(), "k"); !errors.Is(err, leaf.ErrNotReady) {
			t.Errorf("closed: %v", err)
		}
	})
}

func TestLayoutEnds(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a")
		n.clock.step(n.cfg.Layout.End().Sub(n.clock.Now()) - 30*24*time.Hour)
		n.up().issue(10)
		time.Sleep(4 * time.Second)
		if text := n.alarms.has(leaf.AlarmExhausted); !strings.Contains(text, "in 29 days") {
			t.Errorf("alarm %q", text)
		}
		last := w.node("b")
		last.clock.step(last.cfg.Layout.End().Sub(last.clock.Now()) - 5*time.Second)
		last.up().issue(10)
		time.Sleep(6 * time.Second)
		last.refuses(leaf.ErrOverflow)
	})
}

// TestStaticAfterAJump: a static number whose file is lost waits out what was issued by a
// clock that had run ahead as far as is believed at once.
func TestStaticAfterAJump(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Fresh = false })
		begin := func() {
			h, err := worker.New(worker.NewStatic(3), n.disk, n.cfg)
			if err != nil {
				t.Fatal(err)
			}
			n.Holder = h
			w.t.Cleanup(n.crash)
			if err := h.Start(w.t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		begin()
		time.Sleep(20 * time.Second)
		n.clock.step(9 * time.Second)
		time.Sleep(2 * time.Second)
		last := millis(n.issue(100))
		n.crash()
		n.clock.step(-9 * time.Second)
		n.disk.set(func(d *disk) { d.files = map[string][]byte{} })
		begin()
		for range 30 {
			time.Sleep(time.Second)
			id, err := n.Next(w.t.Context(), "k")
			if err != nil {
				continue
			}
			if first := millis(w.take(id, "a")); first <= last {
				t.Fatalf("issues at %d, had issued up to %d", first, last)
			}
		}
		n.issue(1)
	})
}

// unreadable is a disk whose files exist and cannot be read.
type unreadable struct{ *disk }

func (unreadable) ReadFile(string) ([]byte, error) { return nil, errors.New("input/output error") }

// TestFileCannotBeRead: a file that cannot be read is not a missing one. The registry decides;
// if it does not answer, no ID is issued.
func TestFileCannotBeRead(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a")
		h, err := worker.New(worker.NewPool(w.records), unreadable{n.disk}, n.cfg)
		if err != nil {
			w.t.Fatal(err)
		}
		n.Holder = h
		w.t.Cleanup(n.crash)
		w.records.breakOff(true)
		if err := h.Start(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		n.says(leaf.ErrNotReady, "read worker.json: input/output error")
		w.records.breakOff(false)
		time.Sleep(2 * time.Second)
		n.issue(10)
	})
}
