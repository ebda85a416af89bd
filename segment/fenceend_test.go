package segment_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// fenceFiles returns the two files after some ranges, and what they held before the
// last one.
func fenceFiles(t *testing.T) (now, before map[string][]byte) {
	t.Helper()
	d := newDisk()
	a := node(t, newStore(row(10)), d, segment.Config{KeepUnused: true, FixedStep: true})
	drain(t, a, "order", 100)
	before = d.copy().files
	drain(t, a, "order", 100)
	closeNode(t, a)
	return d.files, before
}

// TestFenceFileThatLostSomething (rule Q): less than what was acknowledged is refused,
// and what a crash leaves is not.
func TestFenceFileThatLostSomething(t *testing.T) {
	now, before := fenceFiles(t)
	cut := func(content []byte, lines int) []byte {
		all := bytes.SplitAfter(content, []byte("\n"))
		return bytes.Join(all[:len(all)-1-lines], nil)
	}
	full := markOf(t, now["fence"])
	for _, c := range []struct {
		name   string
		change func(files map[string][]byte)
		want   string // of the error; "": it starts with the last mark
	}{
		{"nothing", func(map[string][]byte) {}, ""},
		{"its last line", func(f map[string][]byte) { f["fence"] = cut(f["fence"], 1) }, "lost its end"},
		{"its last five lines", func(f map[string][]byte) { f["fence"] = cut(f["fence"], 5) }, "lost its end"},
		{"all lines but the header", func(f map[string][]byte) { f["fence"] = bytes.SplitAfter(f["fence"], []byte("\n"))[0] }, "lost its end"},
		{"half of its last line", func(f map[string][]byte) { f["fence"] = f["fence"][:len(f["fence"])-9] }, "lost its end"},
		{"zeros for its last line", func(f map[string][]byte) {
			kept := cut(f["fence"], 1)
			f["fence"] = append(slices.Clone(kept), make([]byte, len(f["fence"])-len(kept))...)
		}, "lost its end"},
		{"an older file", func(f map[string][]byte) { f["fence"] = before["fence"] }, "lost its end"},
		{"the whole file", func(f map[string][]byte) { delete(f, "fence") }, "the fence file is gone"},
		{"a crash before its end is noted", func(f map[string][]byte) { f["fence-end"] = cut(f["fence-end"], 1) }, ""},
		{"an older end", func(f map[string][]byte) { f["fence-end"] = before["fence-end"] }, ""},
		{"a crash while its end is noted", func(f map[string][]byte) { f["fence-end"] = f["fence-end"][:len(f["fence-end"])-3] }, ""},
		{"a crash during the next write", func(f map[string][]byte) { f["fence"] = append(slices.Clone(f["fence"]), "0badc0de [{"...) }, ""},
		{"a spoilt end", func(f map[string][]byte) { f["fence-end"] = append([]byte("x"), f["fence-end"]...) }, "file fence-end, line 1"},
		{"a spoilt line of the end", func(f map[string][]byte) {
			f["fence-end"] = bytes.Replace(f["fence-end"], []byte("\n"), []byte("\nx"), 1)
		}, "file fence-end, line 2"},
		{"the end of another node", func(f map[string][]byte) {
			f["fence-end"] = []byte(seal(`{"file":"leaf-fence-end","version":1,"node":"node-2","lines":1}`))
		}, "node-2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk()
			d.files = maps.Clone(now)
			c.change(d.files)
			a, err := openDisk(d)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got := a.Mark("order"); got != full {
					t.Errorf("mark %+v, want %+v", got, full)
				}
				closeNode(t, a)
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "run: leaf fence rebuild") {
				t.Fatalf("New: %v; want %q and what to do", err, c.want)
			}
			if strings.Contains(err.Error(), "delete") || strings.Contains(err.Error(), "--data-dir") {
				t.Errorf("%v: asks for what may repeat IDs", err)
			}

			if err := fence.Rebuild(d, "node-1", map[string]int64{"order": 5, "other": 7}); err != nil {
				t.Fatal(err)
			}
			if err := fence.Rebuild(d, "node-1", nil); err == nil {
				t.Error("whole fence files are rebuilt")
			}
			if a, err = openDisk(d); err != nil {
				t.Fatal(err)
			}
			for _, tag := range []string{"order", "other"} {
				if m := a.Mark(tag); !m.Latched || !m.Rebuilt || m.High < 5 {
					t.Errorf("tag %q has the mark %+v after the fence was rebuilt; want it latched", tag, m)
				}
			}
			closeNode(t, a)
		})
	}
}

// TestRebuiltFenceIsRead: what stands in the database, by hand perhaps, does not make a fence
// file that the node refuses.
func TestRebuiltFenceIsRead(t *testing.T) {
	d := newDisk()
	d.files["fence"] = []byte("spoilt\n")
	err := fence.Rebuild(d, "node-1", map[string]int64{
		"": 5, "a\xff": 5, strings.Repeat("x", leaf.MaxTagLen+1): 5, "low": -5, "high": math.MaxInt64, "order": 7,
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := openDisk(d)
	if err != nil {
		t.Fatal(err)
	}
	for tag, high := range map[string]int64{"low": 0, "high": segment.MaxMaxID, "order": 7} {
		if m := a.Mark(tag); !m.Latched || m.High != high {
			t.Errorf("tag %q has the mark %+v, want it latched at %d", tag, m, high)
		}
	}
	closeNode(t, a)
}

// TestFenceFileOfVersion1 was written before lines were counted.
func TestFenceFileOfVersion1(t *testing.T) {
	d := newDisk()
	d.files["fence"] = []byte(seal(fenceHeader) + seal(`[{"tag":"order","high":41}]`))
	old := slices.Clone(d.files["fence"])
	a, err := openDisk(d)
	if err != nil || a.Mark("order").High != 41 {
		t.Fatalf("New: %v, want the mark 41", err)
	}
	closeNode(t, a)
	d.files["fence"] = old
	if _, err := openDisk(d); err == nil || !strings.Contains(err.Error(), "is an older one") {
		t.Errorf("New on the file of before the upgrade: %v; want a refusal", err)
	}
}

// TestDiskThatHangs is told within 2 s, and a stop does not wait for it.
func TestDiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, al := newStore(row(10)), newDisk(), newAlarms()
		a := node(t, s, d, segment.Config{FixedStep: true, Alarms: al})
		next(t, a, "order")
		synctest.Wait()
		answers := make(chan struct{})
		d.set(func(d *disk) { d.outside = func() error { <-answers; return nil } })
		drain(t, a, "order", 5) // asks for the next range
		time.Sleep(1900 * time.Millisecond)
		al.want(t)
		time.Sleep(200 * time.Millisecond)
		al.want(t, "disk fence")

		began := time.Now()
		err := closeWithin(t, a, 5*time.Second)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("Close took %v with a disk that hangs, and had 5 s", took)
		}
		if err == nil {
			t.Error("Close says that it ended, and the write may still reach the disk")
		}
		close(answers)
		synctest.Wait()
	})
}

// TestSlowDiskHeals: the alarm ends with the write.
func TestSlowDiskHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, al := newStore(row(10)), newDisk(), newAlarms()
		a := node(t, s, d, segment.Config{FixedStep: true, Alarms: al})
		next(t, a, "order")
		synctest.Wait()
		d.set(func(d *disk) { d.outside = func() error { time.Sleep(3 * time.Second); return errors.New("too late") } })
		drain(t, a, "order", 5)
		time.Sleep(2500 * time.Millisecond)
		al.want(t, "disk fence")
		d.set(func(d *disk) { d.outside = nil })
		time.Sleep(5 * time.Second)
		al.want(t)
		if _, err := a.Next(t.Context(), "order"); err != nil && !errors.Is(err, leaf.ErrExhausted) {
			t.Error(err)
		}
	})
}

// TestFenceEndFollows crashes a node before each write of its disk: it starts again,
// and remembers every range that it was given.
func TestFenceEndFollows(t *testing.T) {
	type crash struct {
		files map[string][]byte
		high  int64 // of what was issued
	}
	var crashes []crash
	var issued int64
	d := newDisk()
	note := func() { crashes = append(crashes, crash{maps.Clone(d.files), issued}) }
	d.onSync = func() error { note(); return nil }
	d.onReplace = func(string) error { note(); return nil }
	for round := range int64(3) {
		// A range that was loaded ahead lies above what was issued, so each round has its own numbers.
		a := node(t, newStore(segment.Row{Tag: "order", MaxID: 1 + 1000*round, Step: 10}), d, segment.Config{KeepUnused: true, FixedStep: true})
		for range 40 {
			id := next(t, a, "order")
			d.set(func(*disk) { issued = id })
		}
		closeNode(t, a)
	}
	for i, c := range crashes {
		d := newDisk()
		d.files = c.files
		a, err := openDisk(d)
		if err != nil {
			t.Fatalf("crash %d of %d: %v", i+1, len(crashes), err)
		}
		if got := a.Mark("order").High; got <= c.high && c.high > 0 {
			t.Errorf("crash %d of %d: mark %d, but %d was issued", i+1, len(crashes), got, c.high)
		}
		closeNode(t, a)
	}
}

// unreadable is a disk that cannot open one of its files.
type unreadable struct {
	*disk

	name string
}

func (u unreadable) ReadFile(name string) ([]byte, error) {
	if name == u.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.disk.ReadFile(name)
}

// TestFenceFileThatCannotBeOpened: the file says all that it said before. So the text asks for the permission first, and does
// not say that the node has forgotten its ranges: a rebuilt fence would latch each tag.
func TestFenceFileThatCannotBeOpened(t *testing.T) {
	files, _ := fenceFiles(t)
	for _, name := range []string{"fence", "fence-end"} {
		d := newDisk()
		d.files = maps.Clone(files)
		_, err := openDisk(unreadable{d, name})
		if err == nil || !errors.Is(err, leaf.ErrConflict) || strings.Contains(err.Error(), "no longer knows") || !strings.Contains(err.Error(), "let this node's user read it") {
			t.Errorf("%s: %v; want that the file must be readable", name, err)
		}
	}
}
