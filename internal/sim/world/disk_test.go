package world_test

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/internal/sim/world"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// on runs f in a process of a new machine with a disk.
func on(t *testing.T, seed uint64, f func(p *sched.Process, d *world.Disk, h *world.DiskHandle)) *world.Disk {
	t.Helper()
	s := sched.New(seed)
	defer s.End()
	p := s.NewMachine("a", begin).Boot()
	d := world.NewDisk(s, &world.Faults{})
	ended := false
	p.Go(func() {
		f(p, d, d.For(p))
		ended = true
	})
	s.Run(time.Hour)
	if !ended && !p.Dead() {
		t.Fatal("it did not end")
	}
	return d
}

func TestDiskKeepsWhatWasSynced(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(100) {
		d := on(t, seed, func(_ *sched.Process, _ *world.Disk, h *world.DiskHandle) {
			if _, err := h.ReadFile("f"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("missing file: %v", err)
			}
			if err := h.Replace("f", []byte("one ")); err != nil {
				t.Error(err)
			}
			f, err := h.Append("f")
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"two ", "three"} {
				if _, err := f.Write([]byte(part)); err != nil {
					t.Error(err)
				}
				if part == "two " {
					if err := f.Sync(); err != nil {
						t.Error(err)
					}
				}
			}
			if b, err := h.ReadFile("f"); err != nil || string(b) != "one two three" {
				t.Errorf("read %q, %v", b, err)
			}
		})
		d.Crash()
		got := d.Content("f")
		whole, kept := "one two three", strings.TrimRight(string(got), "\x00")
		if !strings.HasPrefix(kept, "one two ") || !strings.HasPrefix(whole, kept) {
			t.Fatalf("seed %d: after the crash it is %q", seed, got)
		}
		seen[string(got)] = true
	}
	for _, want := range []string{"one two ", "one two three", "one two th", "one two th\x00\x00\x00"} {
		if !seen[want] {
			t.Errorf("no crash left %q", want)
		}
	}
}

// TestReplaceAfterAnError: nobody knows which content it is, but it is one of the two.
func TestReplaceAfterAnError(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(100) {
		d := on(t, seed, func(_ *sched.Process, d *world.Disk, h *world.DiskHandle) {
			if err := h.Replace("f", []byte("old")); err != nil {
				t.Error(err)
			}
			d.Refuse, d.Lie = 0.3, 0.5
			if err := h.Replace("f", []byte("new")); err == nil {
				seen["acknowledged"]++
				d.Refuse, d.Lie = 0, 0
				if err := h.Replace("f", []byte("new")); err != nil {
					t.Error(err)
				}
			} else if !errors.Is(err, syscall.EIO) {
				t.Error(err)
			}
		})
		d.Crash()
		seen[string(d.Content("f"))]++
	}
	if seen["old"]+seen["new"] != 100 || seen["old"] < 20 || seen["new"] < 20 || seen["acknowledged"] < 20 {
		t.Errorf("%v", seen)
	}
}

func TestFullDisk(t *testing.T) {
	on(t, 1, func(_ *sched.Process, d *world.Disk, h *world.DiskHandle) {
		if err := h.Replace("f", []byte("old")); err != nil {
			t.Error(err)
		}
		f, err := h.Append("f")
		if err != nil {
			t.Fatal(err)
		}
		d.Full = true
		if err := h.Replace("f", []byte("new")); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("replace: %v", err)
		}
		if _, err := f.Write([]byte("more")); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("write: %v", err)
		}
		if got := d.Content("f"); !bytes.HasPrefix(got, []byte("old")) {
			t.Errorf("%q", got)
		}
	})
}

func TestDeadProcessWritesNothing(t *testing.T) {
	s := sched.New(1)
	defer s.End()
	p := s.NewMachine("a", begin).Boot()
	d := world.NewDisk(s, nil)
	d.Slow = time.Minute
	p.Go(func() { _ = d.For(p).Replace("f", []byte("late")) })
	s.After(time.Millisecond, p.Kill)
	s.Run(time.Hour)
	if d.Content("f") != nil {
		t.Error("a dead process wrote")
	}
}

func TestDiskGoesBack(t *testing.T) {
	d := on(t, 1, func(p *sched.Process, d *world.Disk, h *world.DiskHandle) {
		for i, text := range []string{"a", "b", "c"} {
			if err := h.Replace("f", []byte(text)); err != nil {
				t.Error(err)
			}
			if i == 1 {
				if err := h.Replace("g", []byte("g")); err != nil {
					t.Error(err)
				}
			}
			p.Sleep(time.Minute)
		}
	})
	copied := d.Clone()
	if !d.RollBack("f", 90*time.Second) || string(d.Content("f")) != "b" {
		t.Errorf("f is %q", d.Content("f"))
	}
	if !d.RollBackAll(30*time.Second) || string(d.Content("f")) != "a" || d.Content("g") != nil {
		t.Errorf("f is %q, g is %q", d.Content("f"), d.Content("g"))
	}
	if string(copied.Content("f")) != "c" || string(copied.Content("g")) != "g" {
		t.Error("the copy changed with the original")
	}
	if !copied.Tear("f") || string(copied.Content("f")) == "c" {
		t.Error("nothing was torn")
	}
}
