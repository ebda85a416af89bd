package idlog_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/long"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leaf-idgen/leaf/idlog"
)

// model checks logs in the plainest way: it looks at every single ID.
type model struct {
	options idlog.Options
	names   []string
	logs    [][]idlog.Record
	places  [][]idlog.Place // of logs; nil while they are unknown
}

// want returns what [idlog.Check] must report about keys and findings.
func (m *model) want() ([]idlog.KeyReport, []idlog.Duplicate, []idlog.Disorder) {
	type key struct {
		name  string
		times map[int64][]idlog.Place
		bad   uint64
		ids   uint64
	}
	byName := map[string]*key{}
	var order []*key
	var disorders []idlog.Disorder
	for i, log := range m.logs {
		last := map[string]int64{}
		for j, r := range log {
			name := r.Key
			if m.options.OneSpace {
				name = ""
			}
			k := byName[name]
			if k == nil {
				k = &key{name: name, times: map[int64][]idlog.Place{}}
				byName[name] = k
				order = append(order, k)
			}
			if prev, seen := last[name]; seen && r.Lo <= prev && !m.options.AnyOrder {
				k.bad++
				disorders = append(disorders, idlog.Disorder{Record: r, After: prev, Place: m.places[i][j]})
			}
			last[name] = r.Hi
			for id := r.Lo; ; id++ {
				k.ids++
				k.times[id] = append(k.times[id], m.places[i][j])
				if id == r.Hi {
					break
				}
			}
		}
	}
	var keys []idlog.KeyReport
	var duplicates []idlog.Duplicate
	for _, k := range order {
		ids := slices.Sorted(maps.Keys(k.times))
		w := idlog.KeyReport{Key: k.name, IDs: k.ids, Distinct: uint64(len(ids)), Disorders: k.bad, Lowest: ids[0], Highest: ids[len(ids)-1]}
		for i, id := range ids {
			if i > 0 && id-1 != ids[i-1] {
				g := idlog.Gap{Lo: ids[i-1] + 1, Hi: id - 1, Len: uint64(id) - uint64(ids[i-1]) - 1}
				w.Gaps++
				w.Missing += g.Len
				if g.Len > w.Largest.Len {
					w.Largest = g
				}
			}
			places := k.times[id]
			if len(places) == 1 {
				continue
			}
			w.Duplicates++
			if i > 0 && ids[i-1] == id-1 && len(k.times[id-1]) > 1 {
				duplicates[len(duplicates)-1].Hi = id
				continue
			}
			w.Runs++
			duplicates = append(duplicates, idlog.Duplicate{
				Key: k.name, Lo: id, Hi: id, Times: uint64(len(places)), Places: places[:min(len(places), idlog.MaxPlaces)],
			})
		}
		keys = append(keys, w)
	}
	list := m.options.List
	if list == 0 {
		list = 10
	}
	return keys, duplicates[:min(len(duplicates), list)], disorders[:min(len(disorders), list)]
}

// write encodes the logs, half of them as text, reads them back to learn what became
// one record, and returns them as sources.
func (m *model) write(t *testing.T) []idlog.Source {
	t.Helper()
	m.places = nil
	var sources []idlog.Source
	for i, log := range m.logs {
		format := []idlog.Format{idlog.Text, idlog.Binary}[i%2]
		var buf bytes.Buffer
		w := idlog.NewWriter(&buf, format)
		for _, r := range log {
			if err := w.Append(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		m.names = append(m.names, fmt.Sprintf("log%d", i))
		records, places := readAll(t, buf.Bytes(), m.names[i])
		if want, got := ids(log), ids(records); !slices.Equal(want, got) {
			t.Fatalf("%s: what was written and read (-want +got):\n%s", format, cmp.Diff(want, got))
		}
		m.logs[i] = records
		m.places = append(m.places, places)
		sources = append(sources, idlog.Bytes(m.names[i], buf.Bytes()))
	}
	return sources
}

func (m *model) check(t *testing.T, sources []idlog.Source) *idlog.Report {
	t.Helper()
	var plan idlog.Plan
	o := m.options
	o.Plan = func(p idlog.Plan) { plan = p }
	got, err := idlog.CheckSources(t.Context(), o, sources...)
	if err != nil {
		t.Fatal(err)
	}
	keys, duplicates, disorders := m.want()
	if diff := cmp.Diff(keys, got.Keys, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(duplicates, got.Duplicates, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("duplicates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(disorders, got.Disorders, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("out of order (-want +got):\n%s", diff)
	}
	var bad uint64
	for _, k := range keys {
		bad += k.Duplicates + k.Disorders
	}
	if clean := bad == 0; got.Clean() != clean {
		t.Errorf("Clean: got %v, want %v", got.Clean(), clean)
	}
	if got.Spilled > plan.Disk {
		t.Errorf("temporary file of %d bytes, planned were %d", got.Spilled, plan.Disk)
	}
	return got
}

func readAll(t *testing.T, log []byte, name string) (records []idlog.Record, places []idlog.Place) {
	t.Helper()
	r := idlog.NewReader(bytes.NewReader(log), name)
	for {
		rec, err := r.Next()
		if err != nil {
			if err.Error() != "EOF" || r.Torn() != nil {
				t.Fatalf("read: %v, torn: %v", err, r.Torn())
			}
			return records, places
		}
		records = append(records, rec)
		places = append(places, r.Place())
	}
}

type oneID struct {
	Key string
	ID  int64
}

func ids(log []idlog.Record) (all []oneID) {
	for _, r := range log {
		for id := r.Lo; ; id++ {
			all = append(all, oneID{r.Key, id})
			if id == r.Hi {
				break
			}
		}
	}
	return all
}

// randomLogs makes logs of nodes that take turns in handing out ranges, and plants
// faults with some probability.
func randomLogs(rng *rand.Rand) [][]idlog.Record {
	keys := []string{"", "orders", "two words", "#1", "a,b", `"hi"`, "emoji 🍁", "\xff\x00"}[:1+rng.IntN(8)]
	next := make([]int64, len(keys))
	for i := range next {
		next[i] = []int64{0, 1, -50, math.MinInt64, math.MaxInt64 - 3000, 1 << 62}[rng.IntN(6)]
	}
	logs := make([][]idlog.Record, 1+rng.IntN(5))
	fault := []float64{0, 0.002, 0.05}[rng.IntN(3)]
	for range rng.IntN(400) {
		i, k := rng.IntN(len(logs)), rng.IntN(len(keys))
		size := int64(1)
		if rng.IntN(3) == 0 {
			size = 1 + rng.Int64N(8)
		}
		if next[k] > math.MaxInt64-20 {
			continue
		}
		r := idlog.Record{Key: keys[k], Lo: next[k], Hi: next[k] + size - 1}
		next[k] += size
		if rng.IntN(10) == 0 {
			next[k] += rng.Int64N(5) // a gap
		}
		logs[i] = append(logs[i], r)
		if rng.Float64() < fault {
			switch j := rng.IntN(len(logs)); rng.IntN(4) {
			case 0: // the same again, somewhere
				logs[j] = append(logs[j], r)
			case 1: // one ID of it, or of its neighbourhood
				id := r.Lo + rng.Int64N(size)
				logs[j] = append(logs[j], idlog.Record{Key: r.Key, Lo: id, Hi: id})
			case 2: // a range that goes beyond it
				logs[j] = append(logs[j], idlog.Record{Key: r.Key, Lo: r.Lo, Hi: r.Hi + rng.Int64N(9)})
			default: // the same number of another key
				logs[j] = append(logs[j], idlog.Record{Key: keys[rng.IntN(len(keys))], Lo: r.Lo, Hi: r.Hi})
			}
		}
	}
	if rng.IntN(4) == 0 { // both ends of int64
		logs[0] = append(logs[0], idlog.Record{Key: keys[0], Lo: math.MaxInt64, Hi: math.MaxInt64})
		logs[0] = append(logs[0], idlog.Record{Key: keys[0], Lo: math.MinInt64, Hi: math.MinInt64 + 1})
	}
	return logs
}

// TestModel compares the report with that of the model on random logs: what is
// planted is found, nothing else is.
func TestModel(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	var duplicates, disorders uint64
	clean := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := &model{logs: randomLogs(rng), options: idlog.Options{OneSpace: rng.IntN(5) == 0, AnyOrder: rng.IntN(5) == 0, List: rng.IntN(30)}}
		report := m.check(t, m.write(t))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		duplicates += report.Total.Duplicates
		disorders += report.Total.Disorders
		if report.Clean() {
			clean++
		}
	}
	if duplicates == 0 || disorders == 0 || clean == 0 {
		t.Errorf("the random logs prove nothing: %d duplicates, %d out of order, %d clean", duplicates, disorders, clean)
	}
}

// TestSmallMemory does the same on logs so large that they are sorted in many runs,
// and merged in two steps, on files.
func TestSmallMemory(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	const perLog = 25_000 // 1 MiB holds 13,653 entries
	m := &model{options: idlog.Options{Memory: 1 << 20, Temp: t.TempDir()}}
	for i := range 3 {
		var log []idlog.Record
		for j := range perLog {
			id := int64(j)*9 + 3*int64(i) // never consecutive, so that nothing joins
			log = append(log, idlog.Record{Key: []string{"a", "b"}[j%2], Lo: id, Hi: id})
		}
		// Runs end at unpredictable places; repeat what lies everywhere.
		for range 200 {
			log = append(log, log[rng.IntN(perLog)])
		}
		if i == 1 {
			rng.Shuffle(len(log), func(a, b int) { log[a], log[b] = log[b], log[a] })
		}
		m.logs = append(m.logs, log)
	}
	// The last entry of the first buffer and the first of the second, in another log.
	m.logs[2] = append(m.logs[2], m.logs[0][13_652], m.logs[0][13_653])
	files := m.write(t)
	report := m.check(t, files)
	if report.Spilled == 0 {
		t.Error("nothing was spilled: the test proves nothing")
	}
	if left, _ := os.ReadDir(m.options.Temp); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}

	// The same from files.
	folder := t.TempDir()
	var names []string
	for _, src := range files {
		in, err := src.Open()
		if err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		if _, err := buf.ReadFrom(in); err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.Join(folder, src.Name))
		if err := os.WriteFile(names[len(names)-1], buf.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := idlog.Check(t.Context(), m.options, names...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report.Keys, got.Keys); diff != "" {
		t.Errorf("from files (-want +got):\n%s", diff)
	}
}
