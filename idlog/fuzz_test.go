package idlog_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf/idlog"
)

// FuzzText reads anything as a text log; FuzzBinary as a binary one. See readsBack.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"1\n", "orders 5-7\r\n# x\n", "\"a b\",\"5\"\n", "-7--5\n7", "\xef\xbb\xbf1\n", "1\n\x00", `"" 5` + "\n", "9223372036854775808\n",
		"a 5-6 @7-8\n5 @7-\n\"@7-8\" 5 \"@9-9\"\n5 @8-7\n", "5 @4611686018427387903-\n6 @1-4611686018427387904\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(readsBack)
}

func FuzzBinary(f *testing.F) {
	log := binaryLog(f, someRecords, 2, 5)
	f.Add(log)
	f.Add(log[:len(log)-3])
	f.Add(append(log, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Add(block(0, 1, 'k', 14))
	f.Add(block(1, 1, 'k', 14, 0))
	f.Fuzz(func(t *testing.T, payload []byte) {
		readsBack(t, payload)
		if len(payload) > 0 && len(payload) <= 1<<16 {
			readsBack(t, block(payload...)) // past the checksum, which no fuzzer guesses
		}
	})
}

// readsBack holds for whatever log: errors match ErrBroken, records are within the
// limits, and written in either format they are read again as they were.
func readsBack(t *testing.T, log []byte) {
	records, torn, err := readLog(log)
	if err != nil && !errors.Is(err, idlog.ErrBroken) {
		t.Fatalf("%v does not match ErrBroken", err)
	}
	if torn != nil && (torn.Bytes < 1 || torn.Offset < 0 || torn.Offset+torn.Bytes != int64(len(log))) {
		t.Fatalf("%v, of %d bytes", torn, len(log))
	}
	var joined []idlog.Record // as a writer does it
	for _, r := range records {
		if c := r.Call; r.Hi < r.Lo || len(r.Key) > idlog.MaxKey || c != (idlog.Call{}) && (c.Begin < 1 || c.End < c.Begin) {
			t.Fatalf("read %+v", r)
		}
		if n := len(joined) - 1; n >= 0 && joined[n].Key == r.Key && joined[n].Call == r.Call && joined[n].Hi != math.MaxInt64 && joined[n].Hi+1 == r.Lo {
			joined[n].Hi = r.Hi
		} else {
			joined = append(joined, r)
		}
	}
	formats := []idlog.Format{idlog.Text, idlog.Binary}
	if slices.ContainsFunc(records, func(r idlog.Record) bool { return r.Call != (idlog.Call{}) }) {
		formats = formats[:1] // the other one has no times
	}
	for _, format := range formats {
		var buf bytes.Buffer
		w := idlog.NewWriter(&buf, format)
		for _, r := range records {
			if err := w.Append(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		again, torn, err := readLog(buf.Bytes())
		if diff := cmp.Diff(joined, again); diff != "" || err != nil || torn != nil {
			t.Fatalf("%s: error %v, torn %v (-want +got):\n%s", format, err, torn, diff)
		}
	}
}
