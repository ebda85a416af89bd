package respd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf/internal/server/respd"
)

// limit is that of the parser in these tests.
const limit = 1 << 10

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     [][]string
		rest     string // what is left, or the error
	}{
		{"array", "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n", [][]string{{"INCR", "a"}}, ""},
		{"two arrays", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n", [][]string{{"PING"}, {"PING"}}, ""},
		{"any bytes", "*1\r\n$4\r\n\r\n\x00\xff\r\n", [][]string{{"\r\n\x00\xff"}}, ""},
		{"empty argument", "*1\r\n$0\r\n\r\n", [][]string{{""}}, ""},
		{"empty array", "*0\r\n", [][]string{{}}, ""},
		{"null array", "*-1\r\n", [][]string{{}}, ""},
		{"incomplete", "*2\r\n$4\r\nINCR\r\n$1\r\na\r", nil, "*2\r\n$4\r\nINCR\r\n$1\r\na\r"},
		{"line", "INCR a\r\n", [][]string{{"INCR", "a"}}, ""},
		{"line without CR", "PING\n", [][]string{{"PING"}}, ""},
		{"white space", " \t INCR \t a \r\n", [][]string{{"INCR", "a"}}, ""},
		{"empty lines", "\r\n\n", [][]string{{}, {}}, ""},
		{"incomplete line", "INCR", nil, "INCR"},
		{"double quotes", `ECHO "a b\x41\n\"\\\q" ""` + "\r\n", [][]string{{"ECHO", "a bA\n\"\\q", ""}}, ""},
		{"single quotes", `ECHO 'a "b\'\n'` + "\r\n", [][]string{{"ECHO", `a "b'\n`}}, ""},
		{"quotes in a word", `ECHO a"b c"` + "\r\n", [][]string{{"ECHO", "ab c"}}, ""},
		{"half an escape", `ECHO "\x4"` + "\r\n", [][]string{{"ECHO", "x4"}}, ""},
		{"mixed", "PING\r\n*1\r\n$4\r\nPING\r\nPING\r\n", [][]string{{"PING"}, {"PING"}, {"PING"}}, ""},

		{"open quote", "ECHO \"a\r\n", nil, "unbalanced quotes"},
		{"quote at an escape's end", "ECHO \"a\\\n", nil, "unbalanced quotes"},
		{"letter after a quote", "ECHO \"a\"b\r\n", nil, "unbalanced quotes"},
		{"no number", "*\r\n", nil, "invalid multibulk length"},
		{"letters for a number", "*x\r\n", nil, "invalid multibulk length"},
		{"plus", "*+1\r\n", nil, "invalid multibulk length"},
		{"too many arguments", fmt.Sprintf("*%d\r\n", respd.MaxArgs+1), nil, "invalid multibulk length"},
		{"absurd number", "*99999999999999999999", nil, "invalid multibulk length"},
		{"no LF", "*1\rx", nil, "invalid multibulk length"},
		{"nested", "*1\r\n*1\r\n$4\r\nPING\r\n", nil, "expected '$', got '*'"},
		{"a control character for a kind", "*1\r\n\x00", nil, "expected '$', got '?'"},
		{"integer argument", "*1\r\n:1\r\n", nil, "expected '$', got ':'"},
		{"null argument", "*1\r\n$-1\r\n", nil, "invalid bulk length"},
		{"too long an argument", "*1\r\n$1013\r\n", nil, "invalid bulk length, a request has at most 1024 bytes"},
		{"argument that runs on", "*1\r\n$1\r\nab\r\n", nil, "no CRLF"},
		{"after a good one", "PING\r\n*x\r\n", [][]string{{"PING"}}, "invalid multibulk length"},
		{"too many words", strings.Repeat("a ", respd.MaxArgs+1) + "\n", nil, "too many words"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			every := make([]int, len(tt.in))
			for i := range every {
				every[i] = i
			}
			for _, cuts := range [][]int{nil, every} {
				got, rest, err := respd.Parse([]byte(tt.in), limit, cuts...)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%d pieces (-want +got):\n%s", len(cuts)+1, diff)
				}
				switch {
				case err != nil && (tt.rest == "" || !strings.Contains(err.Error(), tt.rest)):
					t.Errorf("%d pieces: %v, want %q", len(cuts)+1, err, tt.rest)
				case err == nil && tt.in[rest:] != tt.rest:
					t.Errorf("%d pieces: left %q, want %q", len(cuts)+1, tt.in[rest:], tt.rest)
				}
			}
		})
	}
}

// FuzzParse: the parser accepts what request writes, makes the same of bytes in one
// piece and in two, and never returns arguments beyond its limits.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		request("INCR", "a"), request("HELLO", "3", "AUTH", "default", "x"), "PING\r\n", "*-1\r\n", "*1\r\n$-1\r\n", `ECHO "a\x41" 'b'` + "\r\n",
		"*2\r\n$4\r\nINCR\r\n", "*1025\r\n", "$1\r\na\r\n", "*1\r\n$999999999\r\n",
	} {
		f.Add([]byte(seed), uint16(len(seed)/2))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		cut := min(int(at), len(b))
		whole, rest, err := respd.Parse(b, limit)
		pieces, restPieces, errPieces := respd.Parse(b, limit, cut)
		if diff := cmp.Diff(whole, pieces); diff != "" || rest != restPieces || (err == nil) != (errPieces == nil) {
			t.Fatalf("%q cut at %d: %v, %d, %v against %v, %d, %v", b, cut, whole, rest, err, pieces, restPieces, errPieces)
		}
		for _, words := range whole {
			if len(words) > respd.MaxArgs {
				t.Fatalf("%d arguments", len(words))
			}
			again, _, err := respd.Parse([]byte(request(words...)), 1<<30)
			if diff := cmp.Diff([][]string{words}, again); diff != "" || err != nil {
				t.Fatalf("%q: %v\n%s", words, err, diff)
			}
		}
	})
}
