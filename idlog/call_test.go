package idlog_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf/idlog"
)

func timed(key string, lo, hi, begin, end int64) idlog.Record {
	return idlog.Record{Key: key, Lo: lo, Hi: hi, Call: idlog.Call{Begin: begin, End: end}}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       idlog.Record
	}{
		{"ID", "5 @7-8\n", timed("", 5, 5, 7, 8)},
		{"key and range", "orders 5-6 @7-8\n", timed("orders", 5, 6, 7, 8)},
		{"in no time", "5 @7-7\n", timed("", 5, 5, 7, 7)},
		{"without a known end", "orders 5 @7-\n", timed("orders", 5, 5, 7, idlog.NoEnd)},
		{"latest", "5 @4611686018427387903-4611686018427387903\n", timed("", 5, 5, idlog.MaxTime, idlog.MaxTime)},
		{"commas and quotes", "\"orders\",\"5\",\"@7-8\"\n", timed("orders", 5, 5, 7, 8)},
		{"a key like a time", "@7-8 5\n", idlog.Record{Key: "@7-8", Lo: 5, Hi: 5}},
		{"a key like a time, with times", "@7-8 5 @7-8\n", timed("@7-8", 5, 5, 7, 8)},
		{"end of line of Windows", "5 @7-8\r\n", timed("", 5, 5, 7, 8)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, torn, err := readLog([]byte(tt.text))
			if diff := cmp.Diff([]idlog.Record{tt.want}, got); diff != "" || err != nil || torn != nil {
				t.Errorf("error %v, torn %v (-want +got):\n%s", err, torn, diff)
			}
		})
	}
}

// TestTimesErrors has the times that are none. The second line of each log has them.
func TestTimesErrors(t *testing.T) {
	t.Parallel()
	const limit = "must be @BEGIN-END, or @BEGIN- without a known end, in nanoseconds from 1 to 4611686018427387903"
	for _, tt := range []struct{ name, field, want string }{
		{"backwards", "@8-7", "the call ends before it begins"},
		{"nothing", "@", limit},
		{"one time", "@7", limit},
		{"no begin", "@-7", limit},
		{"zero", "@0-7", limit},
		{"negative", "@-7-8", limit},
		{"negative end", "@7--8", limit},
		{"too late", "@4611686018427387904-", limit},
		{"ends too late", "@7-4611686018427387904", limit},
		{"end of int64", "@7-9223372036854775807", limit},
		{"fraction", "@7-8.5", limit},
		{"text after the end", "@7-8x", limit},
		{"a date", "@2026-11-26", limit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := readLog([]byte("a 4 @7-8\na 5 " + tt.field + "\n"))
			want := `f:2: times "` + tt.field + `": ` + tt.want
			if err == nil || err.Error() != want || !errors.Is(err, idlog.ErrBroken) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// TestTornTimes cuts a line with times after every byte: no time that is cut short is
// taken for another.
func TestTornTimes(t *testing.T) {
	t.Parallel()
	const line = "a 12 @345-678\n"
	for n := 1; n < len(line); n++ {
		got, torn, err := readLog([]byte(line[:n]))
		if len(got) > 0 || torn == nil || err != nil {
			t.Errorf("%q: %v, torn %v, error %v", line[:n], got, torn, err)
		}
	}
}

// TestWriterOfTimes: consecutive IDs are joined only where they came from one call, and
// times that cannot be written are an error.
func TestWriterOfTimes(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	w := idlog.NewWriter(&buf, idlog.Text)
	for _, r := range []idlog.Record{
		timed("a", 1, 2, 10, 20), timed("a", 3, 3, 10, 20), timed("a", 4, 4, 10, 21), timed("a", 5, 5, 11, idlog.NoEnd), {Key: "a", Lo: 6, Hi: 6},
	} {
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Append(timed("a", 7, 7, 20, 10)); err == nil || !strings.Contains(err.Error(), "times @20-10: the call ends before it begins") {
		t.Errorf("a call that ends before it begins: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if want := "a 1-3 @10-20\na 4 @10-21\na 5 @11-\na 6\n"; buf.String() != want {
		t.Errorf("got %q, want %q", buf.String(), want)
	}
	if err := idlog.NewWriter(io.Discard, idlog.Binary).Append(timed("a", 7, 7, 10, 20)); err == nil || !strings.Contains(err.Error(), "times @10-20") {
		t.Errorf("times in the binary format: %v", err)
	}
}
