package idlog_test

import (
	"io"
	"runtime"
	"strconv"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/long"

	"github.com/leaf-idgen/leaf/idlog"
)

// TestMemory checks a log many times larger than the limit, and counts everything that
// is allocated meanwhile: not more than the limit and a little. It is not parallel,
// since it counts for the whole process.
func TestMemory(t *testing.T) {
	long.Plain(t)
	const records, limit = 250_000, 1 << 20
	source := idlog.Source{Name: "large", Open: func() (io.ReadCloser, error) {
		var id int64
		var line [32]byte // or the test itself would allocate
		var rest []byte
		return io.NopCloser(readerFunc(func(p []byte) (int, error) {
			n := copy(p, rest)
			rest = rest[n:]
			for n < len(p) && id < records {
				id++
				rest = append(strconv.AppendInt(line[:0], (id*7919%records)*2, 10), '\n')
				m := copy(p[n:], rest)
				n, rest = n+m, rest[m:]
			}
			if n == 0 {
				return 0, io.EOF
			}
			return n, nil
		})), nil
	}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := idlog.CheckSources(t.Context(), idlog.Options{Memory: limit, Temp: t.TempDir(), AnyOrder: true}, source)
	runtime.ReadMemStats(&after)
	if err != nil || got.Total.Distinct != records || got.Total.Duplicates != 0 {
		t.Fatalf("%v, %+v", err, got)
	}
	const entry = 24 // bytes that a record has while it is sorted
	if records*entry < 5*limit || got.Spilled == 0 {
		t.Error("the log is too small to prove anything")
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > limit+limit/2 {
		t.Errorf("%d bytes were allocated, the limit is %d", used, limit)
	}
}
