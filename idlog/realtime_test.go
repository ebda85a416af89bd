package idlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leaf-idgen/leaf/idlog"
)

// TestRealTime has one case per rule of real-time order.
func TestRealTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options idlog.Options
		logs    []string
		later   uint64
		want    []string // violations
	}{
		{"one after the other", idlog.Options{}, []string{"1 @10-20\n3 @50-60\n", "2 @30-40\n"}, 2, nil},
		{
			"smaller in another log",
			idlog.Options{},
			[]string{"5 @10-20\n", "4 @21-30\n"},
			1,
			[]string{"log1:1: 4 @21-30 began 1ns after the end of 5 @10-20 at log0:1"},
		},
		{
			"equal",
			idlog.Options{},
			[]string{"5 @10-20\n", "5 @21-30\n"},
			1,
			[]string{"log1:1: 5 @21-30 began 1ns after the end of 5 @10-20 at log0:1"},
		},
		{"begin at the end is beside it", idlog.Options{}, []string{"5 @10-20\n", "4 @20-30\n"}, 0, nil},
		{"one inside the other", idlog.Options{}, []string{"5 @10-90\n", "4 @20-30\n"}, 0, nil},
		{"both in no time", idlog.Options{}, []string{"5 @10-10\n", "4 @10-10\n"}, 0, nil},
		{
			"in no time, one after the other",
			idlog.Options{},
			[]string{"5 @10-10\n", "4 @11-11\n"},
			1,
			[]string{"log1:1: 4 @11-11 began 1ns after the end of 5 @10-10 at log0:1"},
		},
		{
			"lines of one log in any order",
			idlog.Options{},
			[]string{"4 @21-30\n5 @10-20\n"},
			1,
			[]string{"log0:1: 4 @21-30 began 1ns after the end of 5 @10-20 at log0:2"},
		},
		{
			"the largest of all that ended counts, not the last",
			idlog.Options{},
			[]string{"9 @10-20\n", "3 @5-25\n", "5 @30-40\n"},
			1,
			[]string{"log2:1: 5 @30-40 began 10ns after the end of 9 @10-20 at log0:1"},
		},
		{
			"a call that got too small an ID does not lower the bound",
			idlog.Options{},
			[]string{"9 @10-20\n", "1 @30-40\n", "5 @50-60\n"},
			2,
			[]string{"log1:1: 1 @30-40 began 10ns after the end of 9 @10-20 at log0:1", "log2:1: 5 @50-60 began 30ns after the end of 9 @10-20 at log0:1"},
		},
		{
			"the last ID of a range is before the first of the next one",
			idlog.Options{},
			[]string{"10-19 @10-20\n", "15-30 @30-40\n"},
			1,
			[]string{"log1:1: 15-30 @30-40 began 10ns after the end of 10-19 @10-20 at log0:1"},
		},
		{"ranges that touch", idlog.Options{}, []string{"10-19 @10-20\n", "20-30 @30-40\n"}, 1, nil},
		{"chunks of one reply in any order", idlog.Options{}, []string{"20-30 @10-20\n1-9 @10-20\n"}, 0, nil},
		{"keys are apart", idlog.Options{}, []string{"a 5 @10-20\nb 1 @30-40\n"}, 0, nil},
		{
			"keys in one space",
			idlog.Options{OneSpace: true},
			[]string{"a 5 @10-20\nb 1 @30-40\n"},
			1,
			[]string{"log0:2: b 1 @30-40 began 10ns after the end of a 5 @10-20 at log0:1"},
		},
		{
			"negative IDs",
			idlog.Options{},
			[]string{"-1 @10-20\n", "-2 @30-40\n"},
			1,
			[]string{"log1:1: -2 @30-40 began 10ns after the end of -1 @10-20 at log0:1"},
		},
		{
			"both ends of int64",
			idlog.Options{},
			[]string{"9223372036854775807 @10-20\n", "-9223372036854775808 @30-40\n"},
			1,
			[]string{"log1:1: -9223372036854775808 @30-40 began 10ns after the end of 9223372036854775807 @10-20 at log0:1"},
		},
		{"a call without an end bounds nothing", idlog.Options{}, []string{"5 @10-\n", "4 @30-40\n"}, 0, nil},
		{
			"a call without an end is bounded",
			idlog.Options{},
			[]string{"5 @10-20\n", "4 @30-\n"},
			1,
			[]string{"log1:1: 4 @30- began 10ns after the end of 5 @10-20 at log0:1"},
		},
		{"the clocks may be wrong by this", idlog.Options{ClockError: 5}, []string{"5 @10-20\n", "4 @30-40\n"}, 0, nil},
		{
			"more than the clocks may be wrong",
			idlog.Options{ClockError: 5},
			[]string{"5 @10-20\n", "4 @31-40\n"},
			1,
			[]string{"log1:1: 4 @31-40 began 11ns after the end of 5 @10-20 at log0:1"},
		},
		{
			"latest times",
			idlog.Options{ClockError: time.Hour},
			[]string{"5 @1-4611686018427387903\n", "4 @4611686018427387903-\n"},
			0, nil,
		},
		{
			"latest times that are compared",
			idlog.Options{},
			[]string{"5 @1-4611686018427387902\n", "4 @4611686018427387903-\n"},
			1,
			[]string{"log1:1: 4 @4611686018427387903- began 1ns after the end of 5 @1-4611686018427387902 at log0:1"},
		},
		{
			"not all are listed",
			idlog.Options{List: 1},
			[]string{"5 @10-20\n", "4 @30-40\n3 @50-60\n"},
			2,
			[]string{"log1:1: 4 @30-40 began 10ns after the end of 5 @10-20 at log0:1", "and 1 more"},
		},
		{"nothing", idlog.Options{}, []string{""}, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var logs []idlog.Source
			for i, text := range tt.logs {
				logs = append(logs, textLog(fmt.Sprintf("log%d", i), text))
			}
			tt.options.Strict, tt.options.AnyOrder = true, true
			report, err := idlog.CheckSources(t.Context(), tt.options, logs...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range report.Inversions {
				got = append(got, i.String())
			}
			if more := int(report.Total.Inversions) - len(got); more > 0 {
				got = append(got, fmt.Sprintf("and %d more", more))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || report.Total.Later != tt.later {
				t.Errorf("%d compared, want %d; violations (-want +got):\n%s", report.Total.Later, tt.later, diff)
			}
			if len(tt.want) > 0 && report.Clean() {
				t.Error("the report is clean")
			}
		})
	}
}

// TestRealTimeErrors: a check that would not look at all calls is none.
func TestRealTimeErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options idlog.Options
		log     string
		want    string
		broken  bool
	}{
		{"no times", idlog.Options{}, "5 @10-20\norders 6\n", `f:2: record "orders 6": has no times of its call, @BEGIN-END, which the check of real-time order needs`, true},
		{"a binary log", idlog.Options{}, string(binaryLog(t, someRecords, 100, 100)), "has no times of its call", true},
		{"end before begin", idlog.Options{}, "5 @10-20\n6 @40-30\n", `f:2: times "@40-30": the call ends before it begins`, true},
		{"negative clock error", idlog.Options{ClockError: -1}, "", "idlog: clock error -1ns: must be 0 to 1h0m0s", false},
		{"clock error of a day", idlog.Options{ClockError: 24 * time.Hour}, "", "idlog: clock error 24h0m0s: must be 0 to 1h0m0s", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.options.Strict = true
			_, err := idlog.CheckSources(t.Context(), tt.options, textLog("f", tt.log))
			if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, idlog.ErrBroken) != tt.broken {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestRealTimeStillFindsRepeats: the second check takes nothing from the first one.
func TestRealTimeStillFindsRepeats(t *testing.T) {
	t.Parallel()
	got, err := idlog.CheckSources(t.Context(), idlog.Options{Strict: true}, textLog("f", "5 @10-20\n5 @10-20\n4 @10-"), textLog("g", "5 @12-18\n"))
	if err != nil || got.Total.Duplicates != 1 || got.Total.Disorders != 1 || got.Total.Inversions != 0 || got.Duplicates[0].Times != 3 || got.Logs[0].Torn == nil {
		t.Errorf("error %v, %+v", err, got)
	}
}

// TestRealTimeOfALogThatGrows: what is written between the two readings counts in neither.
func TestRealTimeOfALogThatGrows(t *testing.T) {
	t.Parallel()
	log := "a 5 @10-20\n"
	src := textLog("f", log)
	src.Open, src.Size = opens(&log, "a 4 @30-40\nb 1\n"), 0
	got, err := idlog.CheckSources(t.Context(), idlog.Options{Strict: true, Memory: 1 << 20}, src)
	if err != nil || got.Total.Later != 0 || len(got.Keys) != 1 {
		t.Errorf("error %v, %+v", err, got)
	}
}

// TestRealTimeModel compares the check with one that looks at every pair of calls.
func TestRealTimeModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Int64Range(1, 30)
		calls := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) idlog.Record {
			r := timed(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key"), small.Draw(t, "lo"), 0, small.Draw(t, "begin"), idlog.NoEnd)
			r.Hi = r.Lo + rapid.Int64Range(0, 3).Draw(t, "more")
			if rapid.IntRange(0, 5).Draw(t, "answered") > 0 {
				r.Call.End = r.Call.Begin + rapid.Int64Range(0, 8).Draw(t, "took")
			}
			return r
		}), 0, 12).Draw(t, "calls")
		o := idlog.Options{Strict: true, Memory: 1 << 20, ClockError: time.Duration(rapid.Int64Range(0, 3).Draw(t, "clock error")), OneSpace: rapid.Bool().Draw(t, "one space")}

		var logs [2]strings.Builder
		var later, inversions uint64
		for _, j := range calls {
			fmt.Fprintln(&logs[rapid.IntRange(0, 1).Draw(t, "log")], j)
			ended, bad := false, false
			for _, i := range calls {
				if (i.Key == j.Key || o.OneSpace) && i.Call.End != idlog.NoEnd && i.Call.End+2*int64(o.ClockError) < j.Call.Begin {
					ended, bad = true, bad || i.Hi >= j.Lo
				}
			}
			if ended {
				later++
			}
			if bad {
				inversions++
			}
		}
		got, err := idlog.CheckSources(t.Context(), o, textLog("f", logs[0].String()), textLog("g", logs[1].String()))
		if err != nil || got.Total.Later != later || got.Total.Inversions != inversions {
			t.Fatalf("error %v, %d compared, want %d; %d violations, want %d", err, got.Total.Later, later, got.Total.Inversions, inversions)
		}
		for _, i := range got.Inversions {
			if i.BeforePlace.Line == 0 || i.AfterPlace.Line == 0 || i.Before.Hi < i.After.Lo || i.Before.Call.End+2*int64(o.ClockError) >= i.After.Call.Begin {
				t.Fatalf("is no violation, or has no place: %+v", i)
			}
		}
	})
}

// TestRealTimeInSmallMemory has more calls than fit into memory, two of them in the wrong order.
func TestRealTimeInSmallMemory(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	const calls = 30_000 // 1 MiB holds 13,653 entries, two per call
	var text bytes.Buffer
	for i := range int64(calls) {
		id := i * 7919 % calls
		at := 1 + 10*id
		if id == 20_000 {
			id = math.MaxInt64
		}
		fmt.Fprintln(&text, timed("orders", id, id, at, at+5))
		if id == 25_000 {
			fmt.Fprintln(&text, timed("other", id, id, at, at+5))
		}
	}
	var plan idlog.Plan
	got, err := idlog.CheckSources(t.Context(), idlog.Options{
		Strict: true, AnyOrder: true, Memory: 1 << 20, Temp: t.TempDir(), List: -1, Plan: func(p idlog.Plan) { plan = p },
	}, idlog.Bytes("f", text.Bytes()))
	const after = calls - 20_001
	if err != nil || got.Total.Later != calls-1 || got.Total.Inversions != after || got.Total.Duplicates != 0 {
		t.Fatalf("error %v, want %d compared and %d violations: %+v", err, calls-1, after, got.Total)
	}
	if got.Spilled == 0 || got.Spilled > plan.Disk {
		t.Errorf("temporary file of %d bytes, planned were %d", got.Spilled, plan.Disk)
	}
}

// opens returns an Open of a log to which more is appended after the first reading.
func opens(log *string, more string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		in := io.NopCloser(strings.NewReader(*log))
		*log += more
		return in, nil
	}
}
