package worker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/worker"
)

// poolNow is what the clock of the claimers shows. They wait 5 s after T.
const (
	poolNow    int64 = 1_763_000_000_000
	poolMargin int64 = 5_000
)

var poolSpace = worker.Namespace{Name: "prod", Fingerprint: "layout"}

// poolWorld is a pool whose records a test writes as they are.
type poolWorld struct {
	worker.Registry

	records  *memory.Records
	reserved []worker.Adoptable
}

// newPoolWorld returns a pool in a declared namespace with these records.
func newPoolWorld(t *testing.T, records ...worker.Record) *poolWorld {
	t.Helper()
	w := &poolWorld{records: memory.NewRegistry().Open()}
	w.Registry = worker.NewPool(withReserved{w.records, &w.reserved})
	if err := w.Init(t.Context(), poolSpace); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if _, err := w.records.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// withReserved adds the rows of another program.
type withReserved struct {
	worker.Records

	rows *[]worker.Adoptable
}

func (w withReserved) Reserved(context.Context) ([]worker.Adoptable, error) { return *w.rows, nil }

// poolRequest asks for one of the numbers 1 to 4.
func poolRequest() worker.Request {
	return worker.Request{
		Namespace: poolSpace, Address: "10.0.0.9:8080", Nonce: "mine", Numbers: leaf.Range{Lo: 1, Hi: 5},
		Now: poolNow, Bound: poolNow + 60_000, Margin: poolMargin, Quiet: poolNow + 80_000,
	}
}

// others returns a record of somebody else with T at that distance from now.
func others(number, distance int64) worker.Record {
	return worker.Record{Number: number, Address: "10.0.0.1:8080", Nonce: fmt.Sprintf("other %d", number), Bound: poolNow + distance}
}

func released(r worker.Record) worker.Record { r.Released = true; return r }

func TestPoolChooses(t *testing.T) {
	// Numbers 2, 3 and 4 are held unless a case says otherwise.
	held := func(more ...worker.Record) []worker.Record {
		byNumber := map[int64]worker.Record{}
		for n := int64(1); n < 5; n++ {
			byNumber[n] = others(n, 30_000)
		}
		for _, r := range more {
			byNumber[r.Number] = r
		}
		return slices.Collect(maps.Values(byNumber))
	}
	mine := func(number, distance int64) worker.Record {
		r := others(number, distance)
		r.Nonce = "my last"
		return r
	}
	previous := func(number, inner int64) *worker.Previous {
		return &worker.Previous{Number: number, Nonce: "my last", Inner: poolNow + inner}
	}
	from := func(distance int64, r worker.Record) worker.Record { r.Floor = poolNow + distance; return r }
	for _, tt := range []struct {
		name     string
		records  []worker.Record
		reserved []worker.Adoptable
		request  func(*worker.Request)
		number   int64
		floor    int64 // distance from now; for a number without a T: never
		bound    int64 // distance from now
		wantErr  error
		text     string // part of the error
	}{
		{name: "never used", records: []worker.Record{others(1, 1), others(3, 1), others(4, 1)}, number: 2, floor: -poolNow, bound: 60_000},
		{name: "released", records: held(released(others(3, -7))), number: 3, floor: -7, bound: 60_000},
		{name: "released with a T ahead of the clock", records: held(released(others(3, 50))), number: 3, floor: 50, bound: 50},
		{name: "T and the margin have passed", records: held(others(2, -poolMargin)), number: 2, floor: -poolMargin, bound: 60_000},
		{name: "1 ms of the margin is left", records: held(others(2, -poolMargin+1)), wantErr: worker.ErrFull, text: "returns in 1 s"},
		{name: "T of a deleted claim is respected", records: held(worker.Record{Number: 2, Bound: poolNow}), wantErr: worker.ErrFull},
		{name: "T at the end of time", records: held(worker.Record{Number: 2, Nonce: "x", Bound: 1<<63 - 1}), wantErr: worker.ErrFull, text: "returns in 35 s"},

		{name: "before T in the clock's future", records: held(released(others(3, 50)), others(4, -6000)), number: 4, floor: -6000, bound: 60_000},
		{name: "soonest of those in the future", records: held(released(others(2, 90)), released(others(3, 50)), released(others(4, 70))), number: 3, floor: 50, bound: 50},
		{
			name: "nobody's before an unclean holder's", records: held(others(1, -9000), others(2, -9000), others(3, -9000), released(others(4, -1))),
			number: 4, floor: -1, bound: 60_000,
		},

		{
			name: "own file", records: held(mine(3, 30_000)), request: func(r *worker.Request) { r.Previous = previous(3, -40) },
			number: 3, floor: -40, bound: 60_000,
		},
		{
			name: "own file before numbers that were never used", records: []worker.Record{mine(3, 30_000)},
			request: func(r *worker.Request) { r.Previous = previous(3, -40) }, number: 3, floor: -40, bound: 60_000,
		},
		{
			name: "T is not lowered by the own file", records: held(mine(3, 90_000)), request: func(r *worker.Request) { r.Previous = previous(3, 0) },
			number: 3, floor: 0, bound: 90_000,
		},
		{
			name: "clock below the inner bound", records: held(mine(3, 90)), request: func(r *worker.Request) { r.Previous = previous(3, 80) },
			number: 3, floor: 80, bound: 90,
		},
		{
			name: "inner bound above T", records: held(mine(3, 30)), request: func(r *worker.Request) { r.Previous = previous(3, 80) },
			number: 3, floor: 30, bound: 30,
		},
		{
			name: "own file within the margin ahead of the clock", records: []worker.Record{mine(3, 90_000)},
			request: func(r *worker.Request) { r.Previous = previous(3, poolMargin) }, number: 3, floor: poolMargin, bound: 90_000,
		},
		{
			name: "own file further ahead, and another number is free", records: held(mine(3, 90_000), released(others(4, -1))),
			request: func(r *worker.Request) { r.Previous = previous(3, poolMargin+1) }, number: 4, floor: -1, bound: 60_000,
		},
		{
			name: "own file further ahead, and no other number is free", records: held(mine(3, 90_000)),
			request: func(r *worker.Request) { r.Previous = previous(3, poolMargin+1) }, number: 3, floor: poolMargin + 1, bound: 90_000,
		},
		{
			name: "an old copy of the own file", records: held(from(-100, mine(3, 30_000))),
			request: func(r *worker.Request) { r.Previous = previous(3, -101) }, number: 3, floor: 30_000, bound: 30_000,
		},
		{
			name: "an old copy, and another number is free", records: held(from(-100, mine(3, 30_000)), released(others(4, -1))),
			request: func(r *worker.Request) { r.Previous = previous(3, -101) }, number: 4, floor: -1, bound: 60_000,
		},
		{
			name: "own file as of the last renewal", records: held(from(-100, mine(3, 30_000))),
			request: func(r *worker.Request) { r.Previous = previous(3, -100) }, number: 3, floor: -100, bound: 60_000,
		},
		{
			name: "own release says more than the file", records: held(released(mine(3, -500))),
			request: func(r *worker.Request) { r.Previous = previous(3, -1000) }, number: 3, floor: -500, bound: 60_000,
		},
		{
			name: "own file outside the range", records: append(held(), mine(5, 30_000)),
			request: func(r *worker.Request) { r.Previous = previous(5, 0) }, wantErr: worker.ErrFull, text: "all 4 worker IDs 1 to 4",
		},
		{
			name: "own number, which another program gave to another address", records: held(released(mine(3, -500)), released(others(4, -1))),
			reserved: []worker.Adoptable{{Number: 3, Address: "10.0.0.8:8080"}},
			request:  func(r *worker.Request) { r.Previous = previous(3, -1000) }, number: 4, floor: -1, bound: 60_000,
		},
		{
			name: "own file, and another program gave the number to another address", records: held(mine(3, 30_000)),
			reserved: []worker.Adoptable{{Number: 3, Address: "10.0.0.8:8080"}},
			request:  func(r *worker.Request) { r.Previous = previous(3, -40) }, wantErr: worker.ErrFull, text: "1 of them by rows of another program",
		},
		{
			name: "file of another nonce", records: held(), request: func(r *worker.Request) { r.Previous = previous(3, 0) },
			wantErr: worker.ErrFull,
		},
		{
			name: "file without a nonce, number without a claim", records: held(worker.Record{Number: 3, Bound: poolNow + 30_000}),
			request: func(r *worker.Request) { r.Previous = &worker.Previous{Number: 3, Inner: poolNow} }, wantErr: worker.ErrFull,
		},
		{
			name: "file of a number without a record", request: func(r *worker.Request) {
				r.Numbers, r.Previous = leaf.Range{Lo: 3, Hi: 4}, previous(3, 40)
			},
			number: 3, floor: -poolNow, bound: 60_000,
		},

		{
			name: "clock below the floor", records: held(released(others(3, 70_000))), number: 3, floor: 70_000, bound: 70_000,
		},
		{
			name: "own nonce after its release", records: held(worker.Record{Number: 3, Nonce: "mine", Bound: poolNow - 7, Released: true}),
			number: 3, floor: -7, bound: 60_000,
		},
		{name: "no nonce", request: func(r *worker.Request) { r.Nonce = "" }, wantErr: leaf.ErrBadRequest, text: "nonce"},
		{
			name: "another namespace", request: func(r *worker.Request) { r.Namespace.Name = "test" },
			wantErr: worker.ErrForeign, text: `namespace "prod", this node to "test"`,
		},
		{
			name: "another layout", request: func(r *worker.Request) { r.Namespace.Fingerprint = "seconds" },
			wantErr: worker.ErrForeign, text: `layout "layout", this node's "seconds"`,
		},

		{
			name: "another program's number, as far ahead as a report may put it", records: held(released(others(4, -1))),
			reserved: []worker.Adoptable{{Number: 5, Address: "10.0.0.9:8080", Floor: poolNow + 10_000 + poolMargin}},
			request:  func(r *worker.Request) { r.Numbers.Hi = 6 }, number: 5, floor: 10_000 + poolMargin, bound: 10_000 + poolMargin,
		},
		{
			name: "another program's number further ahead, and another number is free", records: held(released(others(4, -1))),
			reserved: []worker.Adoptable{{Number: 5, Address: "10.0.0.9:8080", Floor: poolNow + 10_001 + poolMargin}},
			request:  func(r *worker.Request) { r.Numbers.Hi = 6 }, number: 4, floor: -1, bound: 60_000,
		},
		{
			name: "another program's number further ahead, and no other number is free", records: held(),
			reserved: []worker.Adoptable{{Number: 5, Address: "10.0.0.9:8080", Floor: poolNow + 90_000}},
			request:  func(r *worker.Request) { r.Numbers.Hi = 6 }, number: 5, floor: 90_000, bound: 90_000,
		},
		{
			name: "own file of an adopted number further ahead, and another number is free", records: held(mine(3, 90_000), released(others(4, -1))),
			reserved: []worker.Adoptable{{Number: 3, Address: "10.0.0.9:8080"}},
			request:  func(r *worker.Request) { r.Previous = previous(3, poolMargin+1) }, number: 4, floor: -1, bound: 60_000,
		},
		{
			name: "own file of an adopted number further ahead, and no other number is free", records: held(mine(3, 90_000)),
			reserved: []worker.Adoptable{{Number: 3, Address: "10.0.0.9:8080"}},
			request:  func(r *worker.Request) { r.Previous = previous(3, poolMargin+1) }, number: 3, floor: poolMargin + 1, bound: 90_000,
		},
		{
			name: "another program's number for this address", records: []worker.Record{others(1, 1)},
			reserved: []worker.Adoptable{{Number: 2, Address: "10.0.0.8:8080"}, {Number: 3, Address: "10.0.0.9:8080", Floor: poolNow - 3}},
			number:   3, floor: -3, bound: 60_000,
		},
		{
			name: "that one again, after us", records: held(released(others(3, -100))),
			reserved: []worker.Adoptable{{Number: 3, Address: "10.0.0.9:8080", Floor: poolNow - 3000}},
			number:   3, floor: -100, bound: 60_000,
		},
		{
			name: "that one while somebody holds it", records: held(),
			reserved: []worker.Adoptable{{Number: 3, Address: "10.0.0.9:8080"}}, wantErr: worker.ErrFull, text: "1 of them by rows of another program",
		},
		{
			name: "that one outside the range", records: held(),
			reserved: []worker.Adoptable{{Number: 5, Address: "10.0.0.9:8080"}}, wantErr: worker.ErrFull,
		},
		{
			name:     "other programs' numbers go to nobody else",
			reserved: []worker.Adoptable{{Number: 1, Address: "a"}, {Number: 2, Address: "b"}, {Number: 3, Address: "c"}, {Number: 4, Address: "d"}},
			wantErr:  worker.ErrFull, text: "4 of them by rows of another program",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newPoolWorld(t, tt.records...)
			w.reserved = tt.reserved
			req := poolRequest()
			if tt.request != nil {
				tt.request(&req)
			}
			before, err := w.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := w.Claim(t.Context(), req)
			if tt.wantErr != nil {
				if !errors.Is(err, tt.wantErr) || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("Claim = %+v, %v; want %v with %q", got, err, tt.wantErr, tt.text)
				}
				if after, _ := w.List(t.Context()); !slices.Equal(before, after) {
					t.Errorf("a refused claim changed the records from %+v to %+v", before, after)
				}
				return
			}
			want := worker.Record{
				Number: tt.number, Address: req.Address, Nonce: req.Nonce, Floor: poolNow + tt.floor, Bound: poolNow + tt.bound,
				Version: got.Version,
			}
			if err != nil || !same(got, want) {
				t.Fatalf("Claim = %+v, %v; want %+v", got, err, want)
			}
			after, err := w.List(t.Context())
			if err != nil || !slices.Contains(after, want) {
				t.Errorf("the records are %+v, %v; want %+v among them", after, err, want)
			}
		})
	}
}

// TestPoolSpreads: claimers that start together must not all try one number.
func TestPoolSpreads(t *testing.T) {
	for _, tt := range []struct {
		name     string
		declared bool
	}{
		{"declared namespace", true},
		{"new namespace, in which all must wait", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tried := map[int64]bool{}
			for i := range 64 {
				w := worker.NewPool(memory.NewRegistry().Open())
				if tt.declared {
					if err := w.Init(t.Context(), poolSpace); err != nil {
						t.Fatal(err)
					}
				}
				req := poolRequest()
				req.Numbers, req.Nonce = leaf.Range{Lo: 0, Hi: 1024}, fmt.Sprint("nonce ", i)
				r, err := w.Claim(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				tried[r.Number] = true
			}
			if len(tried) < 48 {
				t.Errorf("64 claimers try %d numbers first", len(tried))
			}
		})
	}
}
