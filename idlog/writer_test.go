package idlog_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/leaf-idgen/leaf/idlog"
)

// TestConcurrentWriters writes from many goroutines: nothing is lost, and the IDs of
// each goroutine keep their order.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	for _, format := range []idlog.Format{idlog.Text, idlog.Binary} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			const goroutines, each = 8, 20_000
			path := filepath.Join(t.TempDir(), "log")
			w, err := idlog.Create(path, format)
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					key := string(rune('a' + g))
					for i := range int64(each) {
						if err := w.ID(key, i*2); err != nil {
							t.Error(err)
						}
						if i%5000 == 0 {
							if err := w.Flush(); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			wg.Wait()
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := idlog.Check(t.Context(), idlog.Options{}, path)
			if err != nil || !got.Clean() || got.Total.Distinct != goroutines*each {
				t.Errorf("%+v, %v", got, err)
			}
			for _, k := range got.Keys {
				if k.IDs != each || k.Highest != 2*(each-1) {
					t.Errorf("%+v", k)
				}
			}
		})
	}
}

// brokenWriter fails from the given write on.
type brokenWriter struct {
	bytes.Buffer
	writes, failAt int
}

var errDisk = errors.New("disk full")

func (b *brokenWriter) Write(p []byte) (int, error) {
	if b.writes++; b.writes >= b.failAt {
		return 0, errDisk
	}
	return b.Buffer.Write(p)
}

func TestWriterErrorsStay(t *testing.T) {
	t.Parallel()
	out := &brokenWriter{failAt: 3}
	w := idlog.NewWriter(out, idlog.Binary) // header, first block, then the error
	id := func(i int64) error { return w.ID("k", i*2) }
	if err := errors.Join(id(1), w.Flush(), id(2)); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); !errors.Is(err, errDisk) {
		t.Errorf("Flush: got %v", err)
	}
	for name, got := range map[string]error{"ID": id(3), "Flush": w.Flush(), "Close": w.Close()} {
		if !errors.Is(got, errDisk) {
			t.Errorf("%s after the error: got %v", name, got)
		}
	}
	if out.writes != out.failAt {
		t.Errorf("%d writes, want none after the failed one", out.writes)
	}
	if got, torn, err := readLog(out.Bytes()); err != nil || torn != nil || len(got) != 1 {
		t.Errorf("what was written before: %v, %v, %v", got, torn, err)
	}
}

func TestWriterRefuses(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := idlog.NewWriter(&out, idlog.Text)
	if err := w.Append(idlog.Record{Key: "k", Lo: 2, Hi: 1}); err == nil {
		t.Error("a range that ends before it begins was accepted")
	}
	if err := w.ID(strings.Repeat("k", idlog.MaxKey+1), 1); err == nil {
		t.Error("a key beyond the limit was accepted")
	}
	if err := errors.Join(w.ID("k", 1), w.Close()); err != nil || out.String() != "k 1\n" {
		t.Errorf("after refused records: %v, %q", err, out.String())
	}
	if w.ID("k", 2) == nil || w.Flush() == nil || w.Close() == nil {
		t.Error("a closed log was used without error")
	}
	if err := idlog.NewWriter(&out, "xml").ID("k", 1); err == nil {
		t.Error("an unknown format was accepted")
	}
	path := filepath.Join(t.TempDir(), "log")
	first, err := idlog.Create(path, idlog.Text)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := idlog.Create(path, idlog.Text); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a log that exists: got %v", err)
	}
}

// slowWriter stops in its first write until it is released.
type slowWriter struct{ entered, release chan struct{} }

func (s slowWriter) Write(p []byte) (int, error) {
	select {
	case s.entered <- struct{}{}:
		<-s.release
	default:
	}
	return len(p), nil
}

// TestLogDoesNotWaitForAWrite: a goroutine logs IDs while the disk hangs in the write of
// another goroutine.
func TestLogDoesNotWaitForAWrite(t *testing.T) {
	t.Parallel()
	out := slowWriter{make(chan struct{}, 1), make(chan struct{})}
	w := idlog.NewWriter(out, idlog.Text)
	var wg sync.WaitGroup
	wg.Go(func() { _ = errors.Join(w.ID("k", 1), w.Flush()) })
	<-out.entered
	for i := range int64(100) {
		if err := w.ID("k", 10+2*i); err != nil { // hangs if a lock is held
			t.Error(err)
		}
	}
	close(out.release)
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestWrittenText holds the text that a writer makes, since people read it.
func TestWrittenText(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := idlog.NewWriter(&out, idlog.Text)
	want := map[string]bool{}
	for _, r := range []struct {
		rec  idlog.Record
		line string
	}{
		{idlog.Record{Key: "orders", Lo: 1, Hi: 2}, "orders 1-3"},
		{idlog.Record{Key: "orders", Lo: 3, Hi: 3}, "orders 1-3"},
		{idlog.Record{Key: "orders", Lo: 5, Hi: 5}, "orders 5"},
		{idlog.Record{Lo: -7, Hi: -5}, "-7--5"},
		{idlog.Record{Key: "two words", Lo: 5, Hi: 5}, `"two words" 5`},
		{idlog.Record{Key: "#", Lo: 5, Hi: 5}, `"#" 5`},
	} {
		want[r.line] = true
		if err := w.Append(r.rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	slices.Sort(got)
	if !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Errorf("got %q", got)
	}
}

// TestBlocksKeepTheirOrder fills a second block while the first is being written. Its
// write must not begin before that of the first has ended.
func TestBlocksKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &gate{release: make(chan struct{})}
		w := idlog.NewWriter(out, idlog.Text)
		var wg sync.WaitGroup
		for i := range int64(2) {
			wg.Go(func() { _ = errors.Join(w.ID("k", 2*i), w.Flush()) })
			synctest.Wait()
		}
		if n := out.writes.Load(); n != 1 {
			t.Errorf("%d writes at once", n)
		}
		close(out.release)
		wg.Wait()
		if err := w.Close(); err != nil || out.text.String() != "k 0\nk 2\n" {
			t.Errorf("%v, %q", err, out.text.String())
		}
	})
}

// TestCloseTakesNothingMore: a record that comes while Close writes is refused, since
// nobody would write it.
func TestCloseTakesNothingMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &gate{release: make(chan struct{})}
		w := idlog.NewWriter(out, idlog.Text)
		if err := w.ID("k", 1); err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- w.Close() }()
		synctest.Wait()
		if w.ID("k", 2) == nil || w.ID("k", 4) == nil {
			t.Error("a record was taken beside Close")
		}
		close(out.release)
		if err := <-closed; err != nil || out.text.String() != "k 1\n" {
			t.Errorf("%v, %q", err, out.text.String())
		}
	})
}

// gate lets writes pass once it is released.
type gate struct {
	writes  atomic.Int64
	release chan struct{}
	text    bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	g.writes.Add(1)
	<-g.release
	return g.text.Write(p)
}
