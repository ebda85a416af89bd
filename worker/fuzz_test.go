package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// start2024 is the wall clock of a node when its bubble begins, in Unix milliseconds.
const start2024 int64 = 1_704_067_200_000

// fuzzed returns a node that starts on number 0, whose last record in the registry is
// r. The bubble's world has no other number.
func fuzzed(w *world, r worker.Record) *node {
	n := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 })
	r.Version = "seen"
	w.records.set(func(rs *records) {
		rs.ns = &worker.StoredNamespace{Namespace: worker.Namespace{Name: "test", Fingerprint: n.cfg.Layout.Fingerprint()}}
		rs.byNum[0] = r
	})
	return n
}

// FuzzFile: whatever worker.json says, sealed with its checksum as if a node had
// written it, the node issues nothing below what the file and the registry know. A
// file that is not the node's own is worth nothing.
func FuzzFile(f *testing.F) {
	const t0, bound = start2024, start2024 + 60_000
	good := fmt.Sprintf(`{"format":1,"node":"a","namespace":"test","fingerprint":%q,"registry":"test","address":"a:8080","number":0,"nonce":"old","inner":%d,"bound":%d}`,
		snowflake.Leaf().Fingerprint(), t0+1000, bound)
	for _, down := range []bool{false, true} {
		f.Add(good, true, down)
		f.Add(strings.Replace(good, `"old"`, `"other"`, 1), true, down)
		f.Add(strings.Replace(good, `"inner":`, `"inner":-`, 1), true, down)
		f.Add(strings.Replace(good, `"format":1`, `"format":2`, 1), true, down)
		f.Add(strings.Replace(good, `"number":0`, `"number":7`, 1), true, down)
		f.Add(good+" ", false, down)
		f.Add(strings.Replace(good, `"number":0`, `"number":-1`, 1), true, down)
		f.Add(strings.Replace(good, `"node":"a"`, `"node":"b"`, 1), true, down)
		f.Add(strings.Replace(good, `"namespace":"test"`, `"namespace":"prod"`, 1), true, down)
		f.Add(strings.Replace(good, `"fingerprint":"`, `"fingerprint":"x`, 1), true, down)
		f.Add("null", true, down)
		f.Add("{", true, down)
	}
	f.Fuzz(func(t *testing.T, line string, sealed, down bool) {
		content := line
		if sealed {
			content += fmt.Sprintf("\ncrc32c %08x\n", crc32.Checksum([]byte(line), crc32.MakeTable(crc32.Castagnoli)))
		}
		var file struct {
			Format                                                 int
			Node, Namespace, Fingerprint, Registry, Address, Nonce string
			Number, Inner, Bound                                   int64
		}
		own := sealed && !strings.Contains(line, "\n") && json.Unmarshal([]byte(line), &file) == nil &&
			file.Format == 1 && file.Node == "a" && file.Namespace == "test" && file.Fingerprint == snowflake.Leaf().Fingerprint() &&
			file.Number == 0 && file.Nonce != "" && file.Inner <= file.Bound
		lowest := bound
		switch {
		case own && down:
			lowest = file.Inner
		case own && file.Nonce == "old" && file.Inner >= t0-20_000: // else it is an old copy
			lowest = min(bound, file.Inner)
		}
		run(t, worker.Fixed, func(w *world) {
			n := fuzzed(w, worker.Record{Address: "a:8080", Nonce: "old", Floor: t0 - 20_000, Bound: bound})
			n.disk.put([]byte(content))
			w.records.breakOff(down)
			if err := n.begin(); err != nil {
				w.t.Fatal(err) // waiting may always heal it
			}
			for range 20 {
				time.Sleep(time.Second)
				id, err := n.Next(w.t.Context(), "k")
				if err != nil {
					if leaf.ClassOf(err).Err == nil {
						w.t.Fatalf("error without a class: %v", err)
					}
					continue
				}
				at := millis(w.take(id, "a"))
				switch {
				case at < lowest:
					w.t.Fatalf("issued at %d, must not below %d", at, lowest)
				case down && !own:
					w.t.Fatalf("issued at %d without registry and without a file of its own", at)
				case down && at >= file.Bound:
					w.t.Fatalf("issued at %d without the registry, the file's T is %d", at, file.Bound)
				}
			}
			w.records.breakOff(false)
			time.Sleep(90 * time.Second)
			if file.Inner <= bound { // what lies above T no node can have written
				n.issue(100)
			}
		})
	})
}

// FuzzRecord: whatever the registry holds about a number, its next owner issues at or
// above its T, and only below the T that it has recorded itself.
func FuzzRecord(f *testing.F) {
	f.Add(start2024, start2024+60_000, "gone", false)
	f.Add(int64(0), start2024+5_000, "gone", true)
	f.Add(start2024+5_000, int64(0), "", true)
	f.Add(int64(math.MinInt64), int64(math.MinInt64), "gone", false)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), "gone", true)
	f.Add(int64(0), int64(math.MaxInt64), "gone", false)
	f.Add(int64(0), snowflake.Leaf().End().UnixMilli(), "gone", true)
	f.Fuzz(func(t *testing.T, floor, bound int64, nonce string, released bool) {
		run(t, worker.Leased, func(w *world) {
			n := fuzzed(w, worker.Record{Address: "b:8080", Nonce: nonce, Floor: floor, Bound: bound, Released: released})
			switch err := n.begin(); {
			case errors.Is(err, leaf.ErrBadRequest) && bound >= snowflake.Leaf().End().UnixMilli():
				return // no ID is left
			case err != nil:
				w.t.Fatal(err)
			}
			issued := false
			for range 90 {
				time.Sleep(time.Second)
				id, err := n.Next(w.t.Context(), "k")
				if err != nil {
					if leaf.ClassOf(err).Err == nil && !errors.Is(err, worker.ErrFull) {
						w.t.Fatalf("error without a class: %v", err)
					}
					continue
				}
				issued = true
				at := millis(w.take(id, "a"))
				if r := w.records.record(0); at < bound || at >= r.Bound {
					w.t.Fatalf("issued at %d, T was %d and is %d", at, bound, r.Bound)
				}
			}
			if bound <= start2024+60_000 && !issued {
				w.t.Errorf("T was %d, and nothing is issued at %d: %+v", bound, start2024+90_000, n.Status())
			}
		})
	})
}

// FuzzPeers: whatever the peers say about the time, the median lies among their
// answers, and a node starts only if it is near.
func FuzzPeers(f *testing.F) {
	f.Add(start2024, start2024+10, start2024-10, uint8(3))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(1), uint8(2))
	f.Add(int64(math.MinInt64), int64(math.MinInt64), int64(math.MaxInt64), uint8(3))
	f.Add(int64(math.MaxInt64), int64(1), start2024, uint8(1))
	f.Add(int64(0), int64(0), int64(0), uint8(0))
	f.Fuzz(func(t *testing.T, x, y, z int64, answer uint8) {
		run(t, worker.Leased, func(w *world) {
			says := map[string]int64{"x:1": x, "y:1": y, "z:1": z}
			for address := range says {
				if err := w.records.Announce(w.t.Context(), worker.Peer{Address: address, Clock: address, Nonce: address}); err != nil {
					w.t.Fatal(err)
				}
			}
			n := w.node("a", func(c *worker.Config) {
				c.Clock.Self = c.Address
				c.Clock.Ask = func(_ context.Context, p worker.Peer) (time.Time, error) {
					if p.Clock[0]-'x' >= answer%4 {
						return time.Time{}, errors.New("connection refused")
					}
					return time.UnixMilli(says[p.Clock]), nil
				}
			})
			if err := n.begin(); err != nil {
				w.t.Fatal(err)
			}
			time.Sleep(time.Second)
			o := n.Status().Clock
			var nearest, farthest time.Duration = math.MaxInt64, math.MinInt64
			for _, e := range o.Each {
				if e.Err == nil {
					nearest, farthest = min(nearest, e.Ahead), max(farthest, e.Ahead)
				}
			}
			if o.Asked != 3 || o.Answered != int(answer%4) {
				w.t.Fatalf("%d of %d answered: %s", o.Answered, o.Asked, o)
			}
			if o.Answered > 0 && (o.Median < nearest || o.Median > farthest) {
				w.t.Errorf("median %v of %s", o.Median, o)
			}
			if near := o.Answered == 0 || o.Median.Abs() <= 5*time.Second; near {
				n.issue(10)
			} else {
				n.refuses(leaf.ErrClock)
			}
		})
	})
}
