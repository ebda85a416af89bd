package idlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf/idlog"
	"github.com/leaf-idgen/leaf/internal/test/long"
)

func textLog(name, text string) idlog.Source { return idlog.Bytes(name, []byte(text)) }

// TestReport has one case per thing that can be found, with its places.
func TestReport(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options idlog.Options
		logs    []string
		total   idlog.KeyReport // without Lowest and Highest
		lines   []string        // duplicates, then violations of the order
	}{
		{"nothing", idlog.Options{}, []string{"", "# only a remark\n"}, idlog.KeyReport{}, nil},
		{"clean", idlog.Options{}, []string{"1\n2\n5\n", "3\n4\n"}, idlog.KeyReport{IDs: 5, Distinct: 5}, nil},
		{
			"twice in one log",
			idlog.Options{},
			[]string{"1\n1\n"},
			idlog.KeyReport{IDs: 2, Distinct: 1, Duplicates: 1, Runs: 1, Disorders: 1},
			[]string{"1: 2 times, log0:1 log0:2", "log0:2: 1 after 1"},
		},
		{
			"over two logs",
			idlog.Options{},
			[]string{"k 1\nk 2\n", "k 2\nk 3\n"},
			idlog.KeyReport{IDs: 4, Distinct: 3, Duplicates: 1, Runs: 1},
			[]string{"k 2: 2 times, log0:2 log1:1"},
		},
		{
			"a range within a range",
			idlog.Options{},
			[]string{"1-100\n", "40-49\n"},
			idlog.KeyReport{IDs: 110, Distinct: 100, Duplicates: 10, Runs: 1},
			[]string{"40-49: 2 times, log0:1 log1:1"},
		},
		{
			"three times, overlapping",
			idlog.Options{},
			[]string{"1-10\n", "5-20\n", "8-12\n"},
			idlog.KeyReport{IDs: 31, Distinct: 20, Duplicates: 8, Runs: 1},
			[]string{"5-12: 2 times, log0:1 log1:1"},
		},
		{
			"ends that touch",
			idlog.Options{},
			[]string{"1-10\n", "10-20\n", "20\n"},
			idlog.KeyReport{IDs: 22, Distinct: 20, Duplicates: 2, Runs: 2},
			[]string{"10: 2 times, log0:1 log1:1", "20: 2 times, log1:1 log2:1"},
		},
		{"the same number of two keys", idlog.Options{}, []string{"a 1\nb 1\n"}, idlog.KeyReport{IDs: 2, Distinct: 2}, nil},
		{
			"the same number of two keys in one space",
			idlog.Options{OneSpace: true},
			[]string{"a 1\nb 1\n"},
			idlog.KeyReport{IDs: 2, Distinct: 1, Duplicates: 1, Runs: 1, Disorders: 1},
			[]string{"1: 2 times, log0:1 log0:2", "log0:2: b 1 after 1"},
		},
		{"order counts per log and key", idlog.Options{}, []string{"a 9\nb 1\n", "a 8\n"}, idlog.KeyReport{IDs: 3, Distinct: 3}, nil},
		{
			"out of order",
			idlog.Options{},
			[]string{"5-9\n8\n1\n"},
			idlog.KeyReport{IDs: 7, Distinct: 6, Duplicates: 1, Runs: 1, Disorders: 2},
			[]string{"8: 2 times, log0:1 log0:2", "log0:2: 8 after 9", "log0:3: 1 after 8"},
		},
		{"any order", idlog.Options{AnyOrder: true}, []string{"5-9\n1\n"}, idlog.KeyReport{IDs: 6, Distinct: 6}, nil},
		{
			"both ends of int64",
			idlog.Options{},
			[]string{"-9223372036854775808\n9223372036854775807\n", "-9223372036854775808\n9223372036854775807\n"},
			idlog.KeyReport{IDs: 4, Distinct: 2, Duplicates: 2, Runs: 2},
			[]string{"-9223372036854775808: 2 times, log0:1 log1:1", "9223372036854775807: 2 times, log0:2 log1:2"},
		},
		{
			"all of int64, twice",
			idlog.Options{},
			[]string{"-9223372036854775808-9223372036854775807\n", "-9223372036854775808-9223372036854775807\n"},
			idlog.KeyReport{IDs: math.MaxUint64, Distinct: math.MaxUint64, Duplicates: math.MaxUint64, Runs: 1},
			[]string{"-9223372036854775808-9223372036854775807: 2 times, log0:1 log1:1"},
		},
		{
			"nothing is listed, all is counted",
			idlog.Options{List: -1},
			[]string{"1\n1\n"},
			idlog.KeyReport{IDs: 2, Distinct: 1, Duplicates: 1, Runs: 1, Disorders: 1},
			nil,
		},
		{
			"more places than are named",
			idlog.Options{AnyOrder: true},
			[]string{strings.Repeat("1\n", idlog.MaxPlaces+2)},
			idlog.KeyReport{IDs: 10, Distinct: 1, Duplicates: 1, Runs: 1},
			[]string{"1: 10 times, log0:1 log0:2 log0:3 log0:4 log0:5 log0:6 log0:7 log0:8"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var logs []idlog.Source
			for i, text := range tt.logs {
				logs = append(logs, textLog(fmt.Sprintf("log%d", i), text))
			}
			got, err := idlog.CheckSources(t.Context(), tt.options, logs...)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, d := range got.Duplicates {
				line := fmt.Sprintf("%v: %d times,", d, d.Times)
				for _, p := range d.Places {
					line += " " + p.String()
				}
				lines = append(lines, line)
			}
			for _, d := range got.Disorders {
				lines = append(lines, d.String())
			}
			if diff := cmp.Diff(tt.lines, lines); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			total := got.Total
			total.Lowest, total.Highest, total.Missing, total.Gaps, total.Largest = 0, 0, 0, 0, idlog.Gap{}
			if diff := cmp.Diff(tt.total, total); diff != "" {
				t.Errorf("total (-want +got):\n%s", diff)
			}
			if want := tt.total.Duplicates+tt.total.Disorders == 0; got.Clean() != want {
				t.Errorf("Clean is %v", got.Clean())
			}
		})
	}
}

func TestGaps(t *testing.T) {
	t.Parallel()
	got, err := idlog.CheckSources(t.Context(), idlog.Options{AnyOrder: true},
		textLog("x", "a 10\na 1-3\na 5\nb -9223372036854775808\nb 9223372036854775807\n"), textLog("y", "a 2-4\n"))
	if err != nil {
		t.Fatal(err)
	}
	a, b := got.Keys[0], got.Keys[1]
	if want := (idlog.Gap{Lo: 6, Hi: 9, Len: 4}); a.Missing != 4 || a.Gaps != 1 || a.Largest != want || a.Lowest != 1 || a.Highest != 10 {
		t.Errorf("a: %+v", a)
	}
	if want := (idlog.Gap{Lo: math.MinInt64 + 1, Hi: math.MaxInt64 - 1, Len: math.MaxUint64 - 1}); b.Missing != want.Len || b.Largest != want {
		t.Errorf("b: %+v", b)
	}
	if got.Total.Gaps != 2 || got.Total.Largest != b.Largest || got.Total.Missing != math.MaxUint64 {
		t.Errorf("total: %+v", got.Total)
	}
}

// TestTornTailsAreReported has both formats; their whole records are checked.
func TestTornTailsAreReported(t *testing.T) {
	t.Parallel()
	bin := binaryLog(t, []idlog.Record{{Key: "", Lo: 1, Hi: 1}, {Key: "", Lo: 7, Hi: 7}}, 1)
	got, err := idlog.CheckSources(t.Context(), idlog.Options{}, textLog("text", "1\n12"), idlog.Bytes("binary", bin[:len(bin)-1]))
	if err != nil {
		t.Fatal(err)
	}
	if got.Total.IDs != 2 || got.Total.Duplicates != 1 {
		t.Errorf("total: %+v", got.Total)
	}
	for i, want := range []string{
		`text:2: torn tail of 2 bytes: the last line, "12", has no end`,
		"binary@19: torn tail of 10 bytes: the last block is incomplete",
	} {
		if torn := got.Logs[i].Torn; torn == nil || torn.String() != want {
			t.Errorf("got  %v\nwant %s", torn, want)
		}
	}
}

// failing is a log whose reader fails after some text.
func failing(text string, err error) idlog.Source {
	return idlog.Source{Name: "failing", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(text), errReader{err})), nil
	}}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// TestNoVerdict has all the reasons why a check fails. None leaves a file behind.
func TestNoVerdict(t *testing.T) {
	t.Parallel()
	var many bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&many, "key%d 1\n", i)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	small := idlog.Options{Memory: 1 << 20}
	read := errors.New("input/output error")
	endless := idlog.Source{Name: "endless", Open: func() (io.ReadCloser, error) { return io.NopCloser(&counting{}), nil }}
	for _, tt := range []struct {
		name    string
		ctx     context.Context //nolint:containedctx // a case of a table
		options idlog.Options
		log     idlog.Source
		want    error
	}{
		{"broken line", t.Context(), idlog.Options{}, textLog("f", "1\nx\n"), idlog.ErrBroken},
		{"read error", t.Context(), small, failing("1\n", read), read},
		{"read error at once", t.Context(), small, failing("", read), read},
		{"cannot be opened", t.Context(), small, idlog.Source{Name: "f", Open: func() (io.ReadCloser, error) { return nil, fs.ErrPermission }}, fs.ErrPermission},
		{"more than the disk has", t.Context(), idlog.Options{}, idlog.Source{Name: "f", Size: 1 << 60}, idlog.ErrNoSpace},
		{"too many keys", t.Context(), small, idlog.Bytes("f", many.Bytes()), idlog.ErrManyKeys},
		{"cancelled", cancelled, small, endless, context.Canceled},
		{"no folder for the temporary file", t.Context(), idlog.Options{Memory: 1 << 20, Temp: filepath.Join(t.TempDir(), "none")}, endless, fs.ErrNotExist},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			temp := t.TempDir()
			if tt.options.Temp == "" {
				tt.options.Temp = temp
			}
			if r, err := idlog.CheckSources(tt.ctx, tt.options, tt.log); r != nil || !errors.Is(err, tt.want) {
				t.Errorf("got %v, %v, want %v", r, err, tt.want)
			}
			if left, _ := os.ReadDir(temp); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	if _, err := idlog.Check(t.Context(), idlog.Options{}, filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := idlog.Check(t.Context(), idlog.Options{}, t.TempDir()); err == nil {
		t.Error("a folder was accepted")
	}
	twice := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(twice, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := twice + "-link"
	if err := os.Symlink(twice, link); err != nil {
		t.Fatal(err)
	}
	if _, err := idlog.Check(t.Context(), idlog.Options{}, twice, link); err == nil || !strings.Contains(err.Error(), "are one file") {
		t.Errorf("one file, named twice: %v", err)
	}
	if _, err := idlog.Check(t.Context(), idlog.Options{Memory: 1}); err == nil {
		t.Error("a memory limit of 1 byte was accepted")
	}
}

// counting is a log without end.
type counting struct{ id int64 }

func (c *counting) Read(p []byte) (int, error) {
	c.id += 2
	return copy(p, fmt.Sprintf("%d\n", c.id)), nil
}

// TestInterruptedWhileSorting cancels when the first records have been spilled.
func TestInterruptedWhileSorting(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	temp := t.TempDir()
	n := 0
	endless := &counting{}
	log := idlog.Source{Name: "endless", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(readerFunc(func(p []byte) (int, error) {
			if n++; n == 100_000 {
				cancel()
			}
			return endless.Read(p)
		})), nil
	}}
	if _, err := idlog.CheckSources(ctx, idlog.Options{Memory: 1 << 20, Temp: temp}, log); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestPlan holds what is said before a check.
func TestPlan(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	var plan idlog.Plan
	o := idlog.Options{Memory: 1 << 20, Temp: t.TempDir(), Plan: func(p idlog.Plan) { plan = p }}
	small := textLog("small", "1\n2\n")
	if _, err := idlog.CheckSources(t.Context(), o, small, small); err != nil {
		t.Fatal(err)
	}
	if plan.Logs != 2 || plan.Bytes != 8 || plan.Disk != 0 || plan.Temp != o.Temp {
		t.Errorf("small logs: %+v", plan)
	}
	large := textLog("large", strings.Repeat("5\n", 50_000))
	if _, err := idlog.CheckSources(t.Context(), o, large); err != nil {
		t.Fatal(err)
	}
	if plan.Disk != 100_000 || plan.Free <= 0 {
		t.Errorf("large log: %+v", plan)
	}
	o.AnyOrder = true
	sizes := []int{60_000, 200_000} // 5 and 15 runs, of which 4 are merged at once
	if long.Asked() {
		sizes = append(sizes, 700_000) // 52 runs
	}
	for _, records := range sizes {
		var log strings.Builder
		for i := range records {
			fmt.Fprintf(&log, "%d\n", i*7%10)
		}
		report, err := idlog.CheckSources(t.Context(), o, textLog("log of many runs", log.String()))
		if err != nil {
			t.Fatal(err)
		}
		if report.Spilled <= plan.Bytes || report.Spilled > plan.Disk || plan.Disk > 2*report.Spilled {
			t.Errorf("%d records: a temporary file of %d bytes, planned were %d, the log has %d", records, report.Spilled, plan.Disk, plan.Bytes)
		}
	}
}

// TestRepeatedAtTheEdgeOfARun repeats the ID that ends one sorted run as the first ID of
// the next one. 1 MiB holds 13,653 entries, so one of the cuts is the edge.
func TestRepeatedAtTheEdgeOfARun(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	for cut := int64(13_650); cut <= 13_656; cut++ {
		var log []byte
		for id := range int64(20_000) {
			log = fmt.Appendln(log, 2*id) // never consecutive, so that no entries join
			if id == cut {
				log = fmt.Appendln(log, 2*id)
			}
		}
		report, err := idlog.CheckSources(t.Context(), idlog.Options{Memory: 1 << 20, Temp: t.TempDir()}, idlog.Bytes("log", log))
		if err != nil {
			t.Fatal(err)
		}
		if report.Spilled == 0 {
			t.Fatal("nothing was spilled: the test proves nothing")
		}
		if len(report.Duplicates) != 1 || report.Duplicates[0].Lo != 2*cut || report.Total.Duplicates != 1 {
			t.Errorf("ID %d is there twice, found: %v", 2*cut, report.Duplicates)
		}
	}
}
