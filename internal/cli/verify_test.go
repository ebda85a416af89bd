package cli_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// notDecimal is what the error of every line says that is no decimal ID.
const notDecimal = "must be a decimal number from -9223372036854775808 to 9223372036854775807, or a range LO-HI of two; see leaf verify --help for the formats\n"

// verifyText writes logs into a folder, checks the files that are named there, and returns the
// exit code and both outputs without the folder. A file "" is the folder itself.
func verifyText(t *testing.T, logs map[string]string, args ...string) (code int, out, errs string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range logs {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, arg := range args {
		if !strings.HasPrefix(arg, "-") && !filepath.IsAbs(arg) {
			args[i] = folder + "/" + arg
		}
	}
	args = append([]string{"verify", "-q"}, args...)
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), cli.Process{Args: args, Stdout: &stdout, Stderr: &stderr})
	without := func(b *bytes.Buffer) string { return strings.ReplaceAll(b.String(), folder+"/", "") }
	return code, without(&stdout), without(&stderr)
}

// TestVerifyTakes has every form of an ID that docs/VERIFY.md says is read. Each log
// repeats its first ID, so a form that is skipped or read as another number gives no
// finding.
func TestVerifyTakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, log, duplicate string }{
		{"ID", "1001\n1002\n1001\n", "1001  2 times: ids:1, ids:3"},
		{"negative", "-5\n-5\n", "-5  2 times: ids:1, ids:2"},
		{"lowest", "-9223372036854775808\n-9223372036854775808\n", "-9223372036854775808  2 times: ids:1, ids:2"},
		{"highest", "9223372036854775807\n9223372036854775807\n", "9223372036854775807  2 times: ids:1, ids:2"},
		{"key and ID, blank", "orders 7\norders 7\n", "orders 7  2 times: ids:1, ids:2"},
		{"key and ID, tab", "orders\t7\norders\t7\n", "orders 7  2 times: ids:1, ids:2"},
		{"key and ID, comma", "orders,7\norders 7\n", "orders 7  2 times: ids:1, ids:2"},
		{"range", "orders 1-10\norders 5-6\n", "orders 5-6  2 times: ids:1, ids:2"},
		{"negative range", "-7--5\n-6\n", "-6  2 times: ids:1, ids:2"},
		{"quoted", "\"two words\",\"7\"\n\"two words\" 7\n", `"two words" 7  2 times: ids:1, ids:2`},
		{"longest key", strings.Repeat("k", 1024) + " 7\n" + strings.Repeat("k", 1024) + " 7\n", " 7  2 times: ids:1, ids:2"},
		{"remarks and blank lines", "# ids\n\n7\n7\n", "7  2 times: ids:3, ids:4"},
		{"lines of Windows", "\xef\xbb\xbf7\r\n7\r\n", "7  2 times: ids:1, ids:2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := verifyText(t, map[string]string{"ids": tt.log}, "ids")
			if code != 1 || !strings.Contains(out, tt.duplicate+"\n") {
				t.Errorf("exit code %d, want 1 and %q\n%s%s", code, tt.duplicate, out, errs)
			}
		})
	}
}

// TestVerifyRefuses has every form that docs/VERIFY.md says is refused: with an error that
// names the line and what is read instead, and without a verdict.
func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, id, want string }{
		{"UUID", "0190b3c4-7d2e-7abc-9def-0123456789ab", notDecimal},
		{"UUID of digits", "12345678-1234-4123-8123-123456789012", notDecimal},
		{"UUID without hyphens", "0190b3c47d2e7abc9def0123456789ab", notDecimal},
		{"UUID of digits without hyphens", "12345678123441238123123456789012", notDecimal},
		{"ULID", "01ARZ3NDEKTSV4RRFFQ69G5FAV", notDecimal},
		{"hexadecimal", "7fffffffffffffff", notDecimal},
		{"hexadecimal with 0x", "0x10", notDecimal},
		{"unsigned, one too many", "9223372036854775808", notDecimal},
		{"unsigned, the highest", "18446744073709551615", notDecimal},
		{"negative, one too many", "-9223372036854775809", notDecimal},
		{"128 bits", "170141183460469231731687303715884105727", notDecimal},
		{"fraction", "1.5", notDecimal},
		{"exponent", "1e18", notDecimal},
		{"plus sign", "+7", notDecimal},
		{"base64", "AAAAAAAAAAc=", notDecimal},
		{"digits of another script", "٧", notDecimal},
		{"JSON", `{"id":7}`, notDecimal},
		{"backwards", "9-8", "ends before it begins"},
		{"three fields", "a b 7", "has more than 2 fields, KEY and ID"},
		{"long key", strings.Repeat("k", 1025) + " 7", "has 1025 bytes, limit 1024"},
	} {
		for place, log := range map[string]string{"alone": "7\n" + tt.id + "\n", "with a key": "7\norders " + tt.id + "\n"} {
			t.Run(tt.name+"/"+place, func(t *testing.T) {
				t.Parallel()
				code, out, errs := verifyText(t, map[string]string{"ids": log}, "--allow-torn", "ids")
				want := tt.want
				if place == "with a key" && strings.Contains(tt.id, " ") {
					want = "has more than 2 fields"
				}
				if code != 2 || out != "" || !strings.HasPrefix(errs, "leaf: no verdict: ids:2: ") || !strings.Contains(errs, want) {
					t.Errorf("exit code %d, want 2 and no verdict on ids:2 with %q\n%s%s", code, want, out, errs)
				}
			})
		}
	}
}

// TestVerifyRefusesWhatIsNoLog has the files that are not read as logs. Each stands beside
// a good log, with --allow-torn: what is not read must not count as clean.
func TestVerifyRefusesWhatIsNoLog(t *testing.T) {
	t.Parallel()
	packed := &bytes.Buffer{}
	z := gzip.NewWriter(packed)
	if _, err := z.Write([]byte("7\n7\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, file, content, want string }{
		{"gzip", "ids.gz", packed.String(), "leaf: no verdict: ids.gz:1: log \"\\x1f\\x8b\\b\\x00\\x00\\x00\\x00\\x00\": is compressed (gzip); unpack it and check the unpacked file"},
		{"zstd", "ids.zst", "\x28\xb5\x2f\xfd\x04\x00", "is compressed (zstd); unpack it"},
		{"xz", "ids.xz", "\xfd7zXZ\x00\x00\x04", "is compressed (xz); unpack it"},
		{"zip", "ids.zip", "PK\x03\x04\x14\x00", "is compressed (zip); unpack it"},
		{"UTF-16", "ids.txt", "\xff\xfe7\x00\n\x00", "leaf: no verdict: ids.txt:1: ID "},
		{"folder", "", "", "is a folder; name the files in it"},
		{"missing", "none", "", "leaf: no verdict: stat none: no such file or directory"},
		{"no regular file", "/dev/null", "", "is no regular file, and a log may have to be read twice; write it to a file first"},
		{"standard input", "-", "", "file=\"-\": must name a file: standard input cannot be read twice; write it to a file first (a file named - is ./-)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			logs := map[string]string{"good": "1\n2\n"}
			if tt.content != "" {
				logs[tt.file] = tt.content
			}
			code, out, errs := verifyText(t, logs, "--allow-torn", "good", tt.file)
			if code != 2 || out != "" || !strings.Contains(errs, tt.want) {
				t.Errorf("exit code %d, want 2 and %q\n%s%s", code, tt.want, out, errs)
			}
		})
	}
	code, out, errs := verifyText(t, map[string]string{"-": "1\n1\n"}, "./-")
	if code != 1 || !strings.Contains(out, "1  2 times: ./-:1, ./-:2\n") {
		t.Errorf("a file named -: exit code %d, want 1\n%s%s", code, out, errs)
	}
}

// TestVerifyDoubts has logs without a finding that prove nothing: the last line has no end, or
// there is no ID.
func TestVerifyDoubts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, log, want string
		code            int
		args            []string
	}{
		{"whole", "7\n8\n", "", 0, nil},
		{"the last line has no end", "7\n8\n7", "leaf: no verdict: a log ends in a piece of a record: ids:3: torn tail of 1 bytes", 2, nil},
		{"the same, accepted", "7\n8\n7", "", 0, []string{"--allow-torn"}},
		{"a finding counts beside a torn tail", "7\n7\n7", "leaf: duplicate IDs: 1, IDs out of order: 1\n", 1, nil},
		{"empty", "", "leaf: no verdict: the logs hold no ID\n", 2, nil},
		{"a time stands where the key does", "10:00:01,7\n10:00:02,7\n", "leaf: no verdict: most IDs were compared with no other one: 2 of the 2 keys have one ID only", 2, nil},
		{"the ID stands where the key does, and one repeats", "1001,7\n1002,8\n1001,9\n1003,9\n1004,9\n", "leaf: no verdict: most IDs were compared with no other one: 3 of the 4 keys have one ID only", 2, nil},
		{"the same as one space", "10:00:01,7\n10:00:02,7\n", "leaf: duplicate IDs: 1, IDs out of order: 1\n", 1, []string{"--one-space"}},
		{"seconds stand where the key does", "10:00:01 7\n10:00:01 8\n10:00:02 7\n10:00:02 9\n", "leaf: no verdict: IDs of different keys are not compared, and all keys are numbers, times or addresses: 2 of them, the first is 10:00:01; ", 2, nil},
		{"the same as one space", "10:00:01 7\n10:00:01 8\n10:00:02 7\n10:00:02 9\n", "leaf: duplicate IDs: 1, IDs out of order: 1\n", 1, []string{"--one-space"}},
		{"nodes stand where the key does", "10.0.0.1:8080 7\n10.0.0.1:8080 8\n10.0.0.2:8080 7\n10.0.0.2:8080 9\n", "leaf: no verdict: IDs of different keys", 2, nil},
		{"a list beside a log with keys", "7\n8\norders 7\norders 8\n", "leaf: no verdict: IDs of different keys are not compared, and some IDs have no key while others have one: 2 have none; ", 2, nil},
		{"the same as one space, with the finding", "7\n8\norders 7\norders 8\n", "leaf: duplicate IDs: 2, ", 1, []string{"--one-space"}},
		{"the same, accepted", "7\n8\norders 7\norders 8\n", "", 0, []string{"--any-key"}},
		{"tags that are numbers", "1001 7\n1001 8\n1002 7\n1002 8\n", "", 0, []string{"--any-key"}},
		{"one tag that is a number", "1001 7\n1001 8\n", "", 0, nil},
		{"some tags are numbers", "1001 7\n1001 8\norders 7\norders 8\n", "", 0, nil},
		{"one ID", "orders 7\n", "", 0, nil},
		{"some keys have one ID", "orders 7\norders 8\nusers 7\n", "", 0, nil},
		{"remarks only", "# none\n", "leaf: no verdict: the logs hold no ID\n", 2, nil},
		{"real-time order", "orders 7 @10-20\norders 8 @30-40\n", "", 0, []string{"--strict"}},
		{"times that nobody looks at", "orders 7 @30-40\norders 8 @10-20\n", "", 0, nil},
		{"against real time", "orders 7 @30-40\norders 8 @10-20\n", "leaf: IDs against real time: 1\n", 1, []string{"--strict"}},
		{"against real time, by less than the clocks are wrong", "orders 7 @30-40\norders 8 @10-20\n", "leaf: no verdict: real-time order was not checked: no call began after", 2, []string{"--strict", "--clock-error=5ns"}},
		{"all calls are concurrent", "orders 7 @10-20\norders 8 @20-40\n", "leaf: no verdict: real-time order was not checked: no call began after another one of its key had ended\n", 2, []string{"--strict"}},
		{"a repeat counts beside calls that are not compared", "orders 7 @10-20\norders 7 @20-40\n", "leaf: duplicate IDs: 1, IDs out of order: 1\n", 1, []string{"--strict"}},
		{"no times", "orders 7 @10-20\norders 8\n", "leaf: no verdict: ids:2: record \"orders 8\": has no times of its call, @BEGIN-END, which the check of real-time order needs; see leaf verify --help", 2, []string{"--strict"}},
		{"a call that ends before it begins", "orders 7 @20-10\n", "leaf: no verdict: ids:1: times \"@20-10\": the call ends before it begins", 2, nil},
		{"a time is cut off", "orders 7 @10-20\norders 8 @30-4", "leaf: no verdict: a log ends in a piece of a record: ids:2", 2, []string{"--strict"}},
		{"clock error alone", "orders 7 @10-20\n", "leaf: bad request: clock-error=\"5ms\": needs --strict", 2, []string{"--clock-error=5ms"}},
		{"clock error of a day", "orders 7 @10-20\n", "leaf: no verdict: idlog: clock error 24h0m0s: must be 0 to 1h0m0s", 2, []string{"--strict", "--clock-error=24h"}},
		{"only a torn tail, accepted", "7", "leaf: no verdict: the logs hold no ID\n", 2, []string{"--allow-torn"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := verifyText(t, map[string]string{"ids": tt.log}, append(tt.args, "ids")...)
			if code != tt.code || !strings.HasPrefix(errs, tt.want) || strings.Contains(out, "clean") != (code == 0) {
				t.Errorf("exit code %d, want %d and %q\n%s%s", code, tt.code, tt.want, out, errs)
			}
		})
	}
}

// TestVerifyLogWithoutIDs: one of several logs has lines, and all of them are remarks, because its IDs
// or its keys begin with #. What it has was compared with nothing. A client that got no ID leaves an
// empty log, which is no doubt, and is named.
func TestVerifyLogWithoutIDs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		log, want string
		code      int
	}{
		{"#7\n#8\n", "no verdict: a log holds lines and no ID: b: lines that begin with # are remarks", 2},
		{"\n", "no verdict: a log holds lines and no ID: b", 2},
		{"", "empty: 1 of 2 logs hold no ID, the first is b", 0},
		{"#7\n8\n", "duplicate IDs: 1", 1},
	} {
		code, out, errs := verifyText(t, map[string]string{"a": "7\n8\n", "b": tt.log}, "a", "b")
		if code != tt.code || !strings.Contains(out+errs, tt.want) || strings.Contains(out, "clean") != (code == 0) {
			t.Errorf("%q: exit code %d, want %d and %q\n%s%s", tt.log, code, tt.code, tt.want, out, errs)
		}
	}
}
