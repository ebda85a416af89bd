package worker_test

import (
	"context"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// TestPoolHearsOfLoss: from when on numbers without a record may be used, after a claimer
// that has lost its number 1 has asked for another one.
func TestPoolHearsOfLoss(t *testing.T) {
	const lost, now = 40_000, 60_000 // the ends of the quiet times of the loss and of this claim
	for _, tt := range []struct {
		name      string
		record    bool   // the registry has one of number 1
		had       int64  // T that the claimer's registry has recorded; that of the record is 90_000
		namespace string // of the claimer's loss; "": the present one
		issueFrom int64  // of the namespace before
		lost, now int64
		want      int64
	}{
		{"the record is there", true, 0, "", 0, lost, now, 0},
		{"the record is there, with the T of its next owner", true, 90_000, "", 0, lost, now, 0},
		{"the record was set back", true, 90_001, "", 0, lost, now, now},
		{"the record was set back, and the namespace was told", true, 90_001, "", lost, lost, now, lost},
		{"the record is gone, the namespace is not", false, 0, "", 0, lost, now, now},
		{"the namespace is another one, with such a record", true, 0, "before", 0, lost, now, now},
		{"the namespace is another one, without a record", false, 0, "before", 0, lost, now, now},
		{"the clock has gone back since the loss", false, 0, "", 0, now, lost, now},
		{"the namespace begins before the loss", false, 0, "before", lost - 1, lost, now, now},
		{"the namespace was told", false, 0, "before", lost, lost, now, lost},
		{"the namespace was told by a claimer that found the loss later", false, 0, "before", lost + 1, lost, now, lost + 1},
		{"the claimer does not know when it lost", false, 0, "before", 0, 0, now, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newPoolWorld(t)
			if tt.record {
				if _, err := w.records.Put(t.Context(), worker.Record{Number: 1, Address: "10.0.0.1:8080", Nonce: "other", Bound: poolNow + 90_000}); err != nil {
					t.Fatal(err)
				}
			}
			at := func(ms int64) int64 {
				if ms == 0 {
					return 0
				}
				return poolNow + ms
			}
			ns, err := w.records.Namespace(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			before := *ns
			before.IssueFrom = at(tt.issueFrom)
			if err := w.records.Amend(t.Context(), *ns, before); err != nil {
				t.Fatal(err)
			}
			req := poolRequest()
			req.Numbers, req.Quiet = leaf.Range{Lo: 1, Hi: 5}, at(tt.now)
			req.Previous = &worker.Previous{Number: 1, Nonce: "mine", Incarnation: tt.namespace, Quiet: at(tt.lost), Bound: at(tt.had)}
			if tt.namespace == "" {
				req.Previous.Incarnation = ns.Incarnation
			}
			for range 2 { // the second claim is later, and does not move the moment
				if _, err := w.Claim(t.Context(), req); err != nil {
					t.Fatal(err)
				}
				after, err := w.records.Namespace(t.Context(), nil)
				if err != nil || after.IssueFrom != at(tt.want) {
					t.Errorf("numbers may be used from %+d on, %v; want %+d", after.IssueFrom-poolNow, err, tt.want)
				}
				req.Nonce, req.Quiet = req.Nonce+" again", req.Quiet+5_000
			}
		})
	}
}

// visited is a store to which others come before each list, in turn.
type visited struct {
	worker.Records

	before []func()
}

func (s *visited) List(ctx context.Context) ([]worker.Record, error) {
	if len(s.before) > 0 {
		s.before[0]()
		s.before = s.before[1:]
	}
	return s.Records.List(ctx)
}

// TestPoolLossBesideFirstRecords: the records are deleted while several processes claim a number for the first time. One claims
// the number of an owner that lives. Each time between its readings of the namespace and of the records, another process gets its
// first record, so that no fewer records are there than the namespace had counted.
func TestPoolLossBesideFirstRecords(t *testing.T) {
	pool, _, store := faultyPool(t)
	req := poolRequest()
	req.Numbers.Hi = req.Numbers.Lo + 1
	owner := poolClaim(t, pool, req)
	first := func(number int64, nonce string) {
		r := worker.Record{Number: number, Address: "10.0.0.8:8080", Nonce: nonce, Bound: req.Bound, Incarnation: owner.Incarnation}
		if _, err := store.Open().Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	claimer := worker.NewPool(&visited{store.Open(), []func(){
		func() { store.Forget(); first(2, "second") },
		func() { first(3, "third") },
	}})
	req.Nonce = "late"
	if got := poolClaim(t, claimer, req); got.Floor < owner.Bound {
		t.Errorf("Claim = %+v; want a floor of at least %d: the owner issues up to there", got, owner.Bound)
	}
}
