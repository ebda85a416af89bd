package idlog_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf/idlog"
)

// readLog reads until the end or an error.
func readLog(log []byte) (records []idlog.Record, torn *idlog.Torn, err error) {
	r := idlog.NewReader(bytes.NewReader(log), "f")
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return records, r.Torn(), nil
		}
		if err != nil {
			return records, r.Torn(), err
		}
		records = append(records, rec)
	}
}

func TestTextFormat(t *testing.T) {
	t.Parallel()
	one := func(key string, lo, hi int64) []idlog.Record { return []idlog.Record{{Key: key, Lo: lo, Hi: hi}} }
	for _, tt := range []struct {
		name, text string
		want       []idlog.Record
	}{
		{"nothing", "", nil},
		{"an ID", "5\n", one("", 5, 5)},
		{"key and ID", "orders 5\n", one("orders", 5, 5)},
		{"comma", "orders,5\n", one("orders", 5, 5)},
		{"comma, blanks and tabs", " \torders ,\t5 ,\n", one("orders", 5, 5)},
		{"end of line of Windows", "orders 5\r\n", one("orders", 5, 5)},
		{"range", "orders 5-7\n", one("orders", 5, 7)},
		{"range of one", "5-5\n", one("", 5, 5)},
		{"range without key", "5-7\n", one("", 5, 7)},
		{"negative", "-5\n", one("", -5, -5)},
		{"negative range", "-7--5\n", one("", -7, -5)},
		{"all of int64", "k -9223372036854775808-9223372036854775807\n", one("k", math.MinInt64, math.MaxInt64)},
		{"leading zeros", "007\n", one("", 7, 7)},
		{"key like a number", "12 5\n", one("12", 5, 5)},
		{"key like a range", "1-2 5\n", one("1-2", 5, 5)},
		{"quoted, as in CSV", "\"orders\",\"5\"\n", one("orders", 5, 5)},
		{"quoted ID", "\"5\"\n", one("", 5, 5)},
		{"quoted key of anything", `"a b\n\"\xff" 5` + "\n", one("a b\n\"\xff", 5, 5)},
		{"quoted empty key", `"" 5` + "\n", one("", 5, 5)},
		{"key in another script", "订单 5\n", one("订单", 5, 5)},
		{"remarks and blank lines", "# x\n\n  # y\n \r\n5\n# z", one("", 5, 5)},
		{"byte order mark", "\xef\xbb\xbf5\n", one("", 5, 5)},
		{"byte order mark of a file that was put behind another one", "# a\n\xef\xbb\xbforders 5\n", one("orders", 5, 5)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, torn, err := readLog([]byte(tt.text))
			if err != nil || torn != nil {
				t.Errorf("error %v, torn %v", err, torn)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTextErrors(t *testing.T) {
	t.Parallel()
	const number = "must be a decimal number from -9223372036854775808 to 9223372036854775807, or a range LO-HI of two"
	for _, tt := range []struct{ name, text, want string }{
		{"no number", "1\nabc\n", `f:2: ID "abc": ` + number},
		{"header of a CSV file", "tag,id\n", `f:1: ID "id": ` + number},
		{"too large", "9223372036854775808\n", `f:1: ID "9223372036854775808": ` + number},
		{"too small", "-9223372036854775809\n", `f:1: ID "-9223372036854775809": ` + number},
		{"plus sign", "+5\n", `f:1: ID "+5": ` + number},
		{"fraction", "5.0\n", `f:1: ID "5.0": ` + number},
		{"date", "2026-11-21\n", `f:1: ID "2026-11-21": ` + number},
		{"open range", "5-\n", `f:1: ID "5-": ` + number},
		{"only a sign", "-\n", `f:1: ID "-": ` + number},
		{"empty quoted ID", "a \"\"\n", `f:1: ID "": ` + number},
		{"backwards", "7-5\n", `f:1: range "7-5": ends before it begins`},
		{"three fields", "a 1 2\n", `f:1: line "a 1 2": has more than 2 fields, KEY and ID (and @BEGIN-END, the times of the call)`},
		{"four fields", "a 1 2 @3-4\n", `f:1: line "a 1 2 @3-4": has more than 2 fields, KEY and ID (and @BEGIN-END, the times of the call)`},
		{"open quote", "\"a 1\n", `f:1: field "\"a 1": is not quoted correctly`},
		{"text after a quote", "\"a\"b 1\n", `f:1: field "\"a\"b 1": is not quoted correctly`},
		{"zeros", "1\n\x00\x00\n", `f:2: ID "\x00\x00": ` + number},
		{"long key", strings.Repeat("k", 1025) + " 1\n", `f:1: key "` + strings.Repeat("k", 40) + `"...: has 1025 bytes, limit 1024`},
		{"long line", strings.Repeat("1", 70_000) + "\n", `f:1: line "` + strings.Repeat("1", 40) + `"...: is longer than 65536 bytes`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := readLog([]byte(tt.text))
			if err == nil || err.Error() != tt.want || !errors.Is(err, idlog.ErrBroken) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestTornText cuts a log after every byte. What is left must be records that were in
// it: no ID cut short may be taken for another.
func TestTornText(t *testing.T) {
	t.Parallel()
	const text = "a 12345\na 12346-12350\nb 7\n"
	whole, _, err := readLog([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(text) {
		got, torn, err := readLog([]byte(text[:n]))
		if err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
		if diff := cmp.Diff(whole[:strings.Count(text[:n], "\n")], got); diff != "" && len(got) > 0 {
			t.Errorf("after %d bytes (-want +got):\n%s", n, diff)
		}
		end := n == 0 || text[n-1] == '\n'
		if end != (torn == nil) {
			t.Errorf("after %d bytes: torn is %v", n, torn)
		}
		if tail := n - (strings.LastIndexByte(text[:n], '\n') + 1); torn != nil && int(torn.Bytes) != tail {
			t.Errorf("after %d bytes: %d are torn, want %d", n, torn.Bytes, tail)
		}
	}
}
