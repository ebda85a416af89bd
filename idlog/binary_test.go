package idlog_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf/idlog"
)

// binaryLog encodes records, and ends a block after each of the given counts.
func binaryLog(t testing.TB, records []idlog.Record, flushAfter ...int) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := idlog.NewWriter(&buf, idlog.Binary)
	for i, r := range records {
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(flushAfter, i+1) {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

var someRecords = []idlog.Record{
	{Key: "a", Lo: 1, Hi: 1},
	{Key: "a", Lo: 3, Hi: 500},
	{Key: "", Lo: math.MinInt64, Hi: math.MaxInt64},
	{Key: "b", Lo: math.MaxInt64, Hi: math.MaxInt64},
	{Key: "b", Lo: math.MinInt64, Hi: math.MinInt64},
	{Key: "a", Lo: 2, Hi: 2},
	{Key: strings.Repeat("k", idlog.MaxKey), Lo: -1, Hi: 0},
	{Key: "a", Lo: 9, Hi: 9},
}

// TestTornBinary cuts a log after every byte: what is left is the records of the whole
// blocks, and the tail is reported.
func TestTornBinary(t *testing.T) {
	t.Parallel()
	log := binaryLog(t, someRecords, 2, 5)
	whole, torn, err := readLog(log)
	if diff := cmp.Diff(someRecords, whole); diff != "" || err != nil || torn != nil {
		t.Fatalf("error %v, torn %v (-want +got):\n%s", err, torn, diff)
	}
	ends := blockEnds(log)
	if len(ends) != 4 { // the header, and three blocks
		t.Fatalf("blocks end at %v", ends)
	}
	for n := 1; n < len(log); n++ {
		got, torn, err := readLog(log[:n])
		if err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
		end, blocks := 0, -1
		for _, e := range ends {
			if e <= n {
				end, blocks = e, blocks+1
			}
		}
		if want := someRecords[:[]int{0, 0, 2, 5}[blocks+1]]; !slices.Equal(want, got) {
			t.Errorf("after %d bytes: got %v, want %v", n, got, want)
		}
		switch {
		case n == end && torn != nil:
			t.Errorf("after %d bytes: %v", n, torn)
		case n != end && (torn == nil || int(torn.Offset) != end || int(torn.Bytes) != n-end):
			t.Errorf("after %d bytes: torn is %v, want %d bytes from %d", n, torn, n-end, end)
		}
	}
	for _, zeros := range []int{1, 7, 8, 9, 10_000, 300_000} {
		got, torn, err := readLog(append(slices.Clone(log), make([]byte, zeros)...))
		if err != nil || !slices.Equal(got, someRecords) || torn == nil || int(torn.Bytes) != zeros {
			t.Errorf("%d zeros at the end: %v, torn %v", zeros, err, torn)
		}
	}
}

// blockEnds returns where the header and the blocks end.
func blockEnds(log []byte) []int {
	ends := []int{8}
	for at := 8; at < len(log); {
		at += 8 + int(binary.LittleEndian.Uint32(log[at:]))
		ends = append(ends, at)
	}
	return ends
}

// TestDamagedBinary changes every byte. Whatever that does, no record is read that was
// not written, and damage before the last block is an error.
func TestDamagedBinary(t *testing.T) {
	t.Parallel()
	log := binaryLog(t, someRecords, 2, 5)
	ends := blockEnds(log)
	for at := range log {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			damaged := slices.Clone(log)
			damaged[at] ^= flip
			got, torn, err := readLog(damaged)
			if err == nil && torn == nil {
				t.Errorf("byte %d ^ %#x: not noticed", at, flip)
			}
			if len(got) > len(someRecords) || !slices.Equal(got, someRecords[:len(got)]) {
				t.Errorf("byte %d ^ %#x: got %v", at, flip, got)
			}
			if err != nil && !errors.Is(err, idlog.ErrBroken) {
				t.Errorf("byte %d ^ %#x: %v does not match ErrBroken", at, flip, err)
			}
			// A length that points beyond the end hides the rest, which is less than a block.
			length := slices.ContainsFunc(ends[:3], func(e int) bool { return e <= at && at < e+4 })
			if at < ends[2] && at >= ends[0] && !length && err == nil {
				t.Errorf("byte %d ^ %#x: taken for a torn tail: %v", at, flip, torn)
			}
		}
	}
}

// block makes a block with the right checksum.
func block(payload ...byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte("\x89idlog\n\x01"), uint32(len(payload)))
	sum := crc32.Update(crc32.Checksum(b[8:12], crc32.MakeTable(crc32.Castagnoli)), crc32.MakeTable(crc32.Castagnoli), payload)
	return append(binary.LittleEndian.AppendUint32(b, sum), payload...)
}

// TestFaultyWriter has blocks whose checksum is right and whose content is not.
func TestFaultyWriter(t *testing.T) {
	t.Parallel()
	huge := binary.AppendUvarint(nil, math.MaxUint64)
	for _, tt := range []struct {
		name string
		log  []byte
		want string
	}{
		{"fine", block(0, 1, 'k', 14), ""},
		{"another version", []byte("\x89idlog\n\x02"), "f@0: version 2: this program reads version 1"},
		{"length of a block", append([]byte("\x89idlog\n\x01"), 0, 0, 2, 0, 0, 0, 0, 0), "f@8: block length 131072: must be 1 to 65536"},
		{"key number", block(4, 14), "f@16: key number 2: the block has 0 keys so far"},
		{"key beyond the block", block(0, 9, 'k'), "f@16: key length 9: limit 1024, and 1 bytes are left in the block"},
		{"key too long", block(append([]byte{0, 0x81, 8}, make([]byte, 1030)...)...), "f@16: key length 1025: limit 1024, and 1030 bytes are left in the block"},
		{"no key length", block(0), `f@16: key length "": is no number, or goes past the end of the block`},
		{"no ID", block(0, 1, 'k'), `f@16: ID "": is no number, or goes past the end of the block`},
		{"no range length", block(1, 1, 'k', 14), `f@16: range length "": is no number, or goes past the end of the block`},
		{"range of length 0", block(1, 1, 'k', 14, 0), "f@16: range length 0: must be 1 to 9223372036854775800 after 7"},
		{"range beyond int64", block(append([]byte{1, 1, 'k', 14}, huge...)...), "f@16: range length 18446744073709551615: must be 1 to 9223372036854775800 after 7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, torn, err := readLog(tt.log)
			if got := fmt.Sprint(err); torn != nil || tt.want != "" && got != tt.want || tt.want == "" && err != nil {
				t.Errorf("got  %v, torn %v\nwant %s", err, torn, tt.want)
			}
		})
	}
}

// TestBinaryIsSmall holds the size that doc.go promises.
func TestBinaryIsSmall(t *testing.T) {
	t.Parallel()
	var singles, ranges []idlog.Record
	for i := range int64(10_000) {
		singles = append(singles, idlog.Record{Key: "orders", Lo: 1<<60 + i*300, Hi: 1<<60 + i*300})
		ranges = append(ranges, idlog.Record{Key: "orders", Lo: i * 3000, Hi: i*3000 + 999})
	}
	if per := float64(len(binaryLog(t, singles))) / 10_000; per > 3.01 {
		t.Errorf("%.2f bytes per ID", per)
	}
	if per := float64(len(binaryLog(t, ranges))) / 10_000; per > 5.01 {
		t.Errorf("%.2f bytes per range", per)
	}
	var joined bytes.Buffer
	w := idlog.NewWriter(&joined, idlog.Binary)
	for i := range int64(10_000) {
		if err := w.ID("orders", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || joined.Len() > 40 {
		t.Errorf("consecutive IDs: %d bytes, %v", joined.Len(), err)
	}
}
