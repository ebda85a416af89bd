package worker_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// wide is a registry whose layout has 22 bits of worker, as Baidu's, of which a thousand
// numbers are used.
func wide(t testing.TB) (worker.Registry, worker.Request) {
	t.Helper()
	r := newRecords(worker.Leased)
	req := worker.Request{
		Namespace: worker.Namespace{Name: "test", Fingerprint: "wide"}, Address: "a:1",
		Numbers: leaf.Range{Lo: 0, Hi: 1 << 22}, Now: start2024, Bound: start2024 + 60_000,
	}
	for n := range int64(1000) {
		r.byNum[n*n] = worker.Record{Number: n * n, Nonce: "other", Bound: start2024 + 60_000, Version: "x"}
	}
	return worker.NewPool(r), req
}

// TestClaimOfAWideLayout: the cost of a claim grows with the numbers in use, not with the
// numbers that the layout has.
func TestClaimOfAWideLayout(t *testing.T) {
	pool, req := wide(t)
	seen := map[int64]bool{}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 10 {
		req.Nonce = fmt.Sprint("nonce ", i)
		r, err := pool.Claim(t.Context(), req)
		if err != nil || seen[r.Number] || r.Floor != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		seen[r.Number] = true
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
		t.Errorf("10 claims allocated %d MiB", got>>20)
	}
}

// TestEveryNumberIsGivenOut: whatever is used already, all other numbers are handed out,
// each once, and then none.
func TestEveryNumberIsGivenOut(t *testing.T) {
	for _, used := range [][]int64{{}, {0}, {9}, {0, 1, 2}, {4, 5}, {8, 9}, {0, 2, 4, 6, 8}, {1, 3, 5, 7, 9, 11}} {
		r := newRecords(worker.Leased)
		want := map[int64]bool{}
		for n := int64(2); n < 10; n++ {
			want[n] = true
		}
		for _, n := range used {
			delete(want, n)
			r.byNum[n] = worker.Record{Number: n, Nonce: "other", Bound: start2024 + 60_000, Version: "x"}
		}
		pool := worker.NewPool(r)
		req := worker.Request{Namespace: worker.Namespace{Name: "test"}, Address: "a:1", Numbers: leaf.Range{Lo: 2, Hi: 10}, Now: start2024, Bound: start2024 + 60_000}
		for i := 0; len(want) > 0; i++ {
			req.Nonce = fmt.Sprint("nonce ", i)
			got, err := pool.Claim(t.Context(), req)
			if err != nil || !want[got.Number] {
				t.Fatalf("used %v: claim %+v, %v; left %v", used, got, err, want)
			}
			delete(want, got.Number)
		}
		req.Nonce = "one too many"
		if got, err := pool.Claim(t.Context(), req); err == nil {
			t.Errorf("used %v: claim %+v of a full range", used, got)
		}
	}
}

// TestRangeOfASecondRegistryAsTheTextSays: nodes take numbers from a registry, and others from a second one, with the ranges that
// docs/SNOWFLAKE.md names. No two have one number. A node without a range holds any number.
func TestRangeOfASecondRegistryAsTheTextSays(t *testing.T) {
	document, err := os.ReadFile("../docs/SNOWFLAKE.md")
	if err != nil {
		t.Fatal(err)
	}
	ranges := map[string]leaf.Range{"": {Lo: 0, Hi: 1024}, "0-511": {Lo: 0, Hi: 512}, "512-1023": {Lo: 512, Hi: 1024}}
	says := regexp.MustCompile(`give .--snowflake-worker-range (0-511). to all nodes, one after the other, wait for the longest horizon`).FindStringSubmatch(string(document))
	if says == nil {
		says = []string{"", ""}
	}
	held := map[int64]string{}
	for _, registry := range []string{says[1], "512-1023"} {
		pool := worker.NewPool(newRecords(worker.Leased))
		for i := range 500 { // so many that two halves which overlap have a number in common
			got, err := pool.Claim(t.Context(), worker.Request{
				Namespace: worker.Namespace{Name: "test"}, Address: "a:1", Nonce: fmt.Sprint(registry, i),
				Numbers: ranges[registry], Now: start2024, Bound: start2024 + 60_000,
			})
			if err != nil || held[got.Number] != "" {
				t.Fatalf("claim %+v, %v; nodes of the other registry, with the range %q, hold it", got, err, says[1])
			}
			held[got.Number] = registry + " "
		}
	}
}

// BenchmarkClaimOfAWideLayout is one claim among 4,194,304 numbers.
func BenchmarkClaimOfAWideLayout(b *testing.B) {
	pool, req := wide(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		req.Nonce = fmt.Sprint("nonce ", i)
		if _, err := pool.Claim(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRecordsDoNotGrowWithClaims: nodes that start and stop for years do not leave a record for
// each start in a wide layout. A claim reads all records, and must end in its time.
func TestRecordsDoNotGrowWithClaims(t *testing.T) {
	const starts, most = 500, 200
	r := newRecords(worker.Leased)
	pool := worker.NewPool(r)
	req := worker.Request{
		Namespace: worker.Namespace{Name: "test", Fingerprint: "wide"}, Address: "a:1",
		Numbers: leaf.Range{Lo: 0, Hi: 1 << 22}, Now: start2024, Bound: start2024 + 60_000,
	}
	for i := range starts {
		req.Nonce = fmt.Sprint("nonce ", i)
		got, err := pool.Claim(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if err := pool.Release(t.Context(), got, req.Now); err != nil {
			t.Fatal(err)
		}
	}
	if used := r.used(); used > most {
		t.Errorf("%d starts of one node left %d records", starts, used)
	}
}
