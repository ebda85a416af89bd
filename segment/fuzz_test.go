package segment_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// seal makes a line of the node's files out of a text, as one that was written whole.
// A fuzzer cannot guess checksums, so it would never get behind them.
func seal(text string) string {
	return fmt.Sprintf("%08x %s\n", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)), text)
}

const fenceHeader = `{"file":"leaf-fence","version":1,"node":"node-1"}`

var atLine = regexp.MustCompile(`^leaf: conflict: fence file, line (\d+): `)

// FuzzFenceLines: a line whose checksum is right was acknowledged once, so all of its
// marks are known after a start, or there is no start. What a crash leaves of the next
// write changes neither.
func FuzzFenceLines(f *testing.F) {
	f.Add(`[{"tag":"order","high":11}]`+"\n"+`[{"tag":"order","high":21,"latched":true},{"tag":"b","high":1}]`, 30)
	f.Add(`[{"tag":"order","high":-1}]`, 0)
	f.Add("[]\n[]", 3)
	f.Add(`[{"tag":"order","high":9223372036854775807}]`, 9)
	f.Add(`[{"tag":"","high":1}]`, 1)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		content := seal(fenceHeader)
		marks := map[string]fence.Mark{}
		lines := strings.Split(text, "\n")
		for _, line := range lines {
			content += seal(line)
			if !json.Valid([]byte(line)) {
				t.Skip() // no program wrote that
			}
			var entries []struct {
				Tag     string
				High    int64
				Latched bool
			}
			if json.Unmarshal([]byte(line), &entries) == nil {
				for _, e := range entries {
					marks[e.Tag] = fence.Mark{High: e.High, Latched: e.Latched}
				}
			}
		}
		next := seal(`[{"tag":"order","high":5000}]`)
		torn := next[:min(max(cut, 0), len(next)-2)]
		for _, tail := range []string{"", torn} {
			d := newDisk()
			d.files["fence"] = []byte(content + tail)
			a, err := openDisk(d)
			if err != nil {
				m := atLine.FindStringSubmatch(err.Error())
				if m == nil {
					t.Fatalf("the error does not name the line: %v", err)
				}
				if n, _ := strconv.Atoi(m[1]); n < 2 || n > 1+len(lines) {
					t.Fatalf("the error names line %d of %d: %v", n, 1+len(lines), err)
				}
				continue
			}
			for tag, want := range marks {
				if got := a.Mark(tag); got != want {
					t.Errorf("tag %q has mark %+v, the file says %+v", tag, got, want)
				}
				if want.High < 0 || want.High > segment.MaxMaxID || leaf.ValidateTag(tag) != nil {
					t.Errorf("tag %q with mark %+v is accepted", tag, want)
				}
			}
			if err := a.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzFenceState: whatever the state file holds, the node's marks are in the cluster
// fence before it serves, and no number is issued twice.
func FuzzFenceState(f *testing.F) {
	const good = `{"file":"leaf-cluster-fence","version":1,"node":"a","space":"old","merged":true}`
	f.Add(good, true)
	f.Add(strings.Replace(good, "true", "false", 1), true)
	f.Add(strings.Replace(good, `"a"`, `"b"`, 1), true)
	f.Add("null", true)
	f.Add("xx", false)
	f.Add(strings.Replace(good, `"old"`, `"now"`, 1), true)
	f.Add(strings.NewReplacer(`"a"`, `"b"`, `"old"`, `"now"`).Replace(good), true)
	f.Add(strings.NewReplacer(`:1`, `:2`, `"old"`, `"now"`).Replace(good), true)
	f.Fuzz(func(t *testing.T, text string, sealed bool) {
		synctest.Test(t, func(t *testing.T) {
			s, f, d, ids := newStore(row(10)), sharing(memory.NewFence()), newDisk(), newLedger()
			now, _, err := f.Fence.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(text, `"now"`, strconv.Quote(now)) // the incarnation is random
			var state struct {
				File, Node, Space string
				Version           int
				Merged            bool
			}
			// The node's own word that its marks are there is believed, until a load sees
			// that they are not.
			believed := sealed && json.Unmarshal([]byte(text), &state) == nil && state.Merged && state.Space == now &&
				state.File == "leaf-cluster-fence" && state.Version == 1 && state.Node == "a"
			if sealed {
				text = seal(text)
			}
			d.files["fence"] = []byte(seal(strings.Replace(fenceHeader, "node-1", "a", 1)) + seal(`[{"tag":"order","high":201}]`))
			d.files["cluster-fence"] = []byte(text)
			s.Put(segment.Row{Tag: "order", MaxID: 201, Step: 10})
			a := node(t, s, d, fenced("a", f, nil))
			synctest.Wait()
			if end := f.end(t, "order"); end < 201 && !believed {
				t.Errorf("the cluster fence holds %d, the node reserved up to 201", end)
			}
			ids.add(t, "a", drain(t, a, "order", 25)...)
			if !merged(d) {
				t.Errorf("the state is not remembered: %q", d.content("cluster-fence"))
			}
			closeNode(t, a)
			b := node(t, s, d, fenced("a", f, nil))
			ids.add(t, "b", drain(t, b, "order", 25)...)
			closeNode(t, b)
		})
	})
}

// FuzzRecent: the list of recent tags is a convenience. Whatever it holds, the node
// starts and serves, and after a while the list has what was used and nothing else.
func FuzzRecent(f *testing.F) {
	for _, text := range []string{
		`{"tags":{"order":946684800,"gone":946684800}}`, `{"tags":{"gone":978307200}}`, `{"tags":{"gone":9223372036854775807}}`, `{"tags":{"gone":-9223372036854775808}}`,
		`{"tags":null}`, `{"tags":{"order":1.5}}`, "null", "{torn", "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		synctest.Test(t, func(t *testing.T) {
			d := newDisk()
			d.files["recent.json"] = content
			withoutBoard := struct{ segment.Store }{newStore(row(10))} // at which a node looks every few seconds
			a := node(t, withoutBoard, d, segment.Config{SyncInterval: time.Hour})
			next(t, a, "order")
			time.Sleep(26 * time.Hour)
			next(t, a, "order")
			closeNode(t, a)
			var list struct{ Tags map[string]int64 }
			if err := json.Unmarshal(d.content("recent.json"), &list); err != nil {
				t.Fatal(err)
			}
			if len(list.Tags) != 1 || list.Tags["order"] == 0 {
				t.Errorf("%q became %q", content, d.content("recent.json"))
			}
		})
	})
}

// FuzzRow: whatever somebody writes into a row, there is an error for it, or numbers
// from its max_id on, each once, rising.
func FuzzRow(f *testing.F) {
	f.Add(int64(1), int64(10), int64(0), int64(0), false)
	f.Add(int64(-1), int64(10), int64(1), int64(1), true)
	f.Add(int64(0), int64(segment.MaxStep), int64(5), int64(1), false)
	f.Add(int64(segment.MaxMaxID)-15, int64(10), int64(math.MinInt64), int64(math.MaxInt64), false)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(0), int64(0), false)
	f.Add(int64(math.MinInt64), int64(-1), int64(0), int64(0), false)
	f.Fuzz(func(t *testing.T, maxID, step, minStep, maxStep int64, fixed bool) {
		synctest.Test(t, func(t *testing.T) {
			s := newStore(segment.Row{Tag: "order", MaxID: maxID, Step: step, Options: segment.Options{MinStep: minStep, MaxStep: maxStep, FixedStep: fixed}})
			a := node(t, s, nil, segment.Config{MaxWait: time.Second})
			last := maxID - 1
			for range 25 {
				id, err := a.Next(t.Context(), "order")
				if err != nil {
					if leaf.ClassOf(err).Err == nil || errors.Is(err, leaf.ErrUnknownTag) {
						t.Errorf("row max_id=%d step=%d: %v", maxID, step, err)
					}
					break
				}
				if id < 0 || id <= last && maxID != math.MinInt64 || id >= segment.MaxMaxID {
					t.Fatalf("ID %d after %d", id, last)
				}
				last = id
			}
			if got := s.maxID(t, "order"); got < maxID {
				t.Errorf("max_id went from %d back to %d", maxID, got)
			}
		})
	})
}
