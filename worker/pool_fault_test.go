package worker_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/worker"
)

var errWire = errors.New("the wire broke")

// onPut lets calls pass, but for one Put that it decides about.
type onPut struct {
	skip   int // how many Puts pass first
	decide func(ctx context.Context, carryOut func(context.Context) error) error
}

func (o *onPut) intercept(ctx context.Context, method string, carryOut func(context.Context) error) error {
	if method != "Put" || o.decide == nil {
		return carryOut(ctx)
	}
	if o.skip--; o.skip >= 0 {
		return carryOut(ctx)
	}
	decide := o.decide
	o.decide = nil
	return decide(ctx, carryOut)
}

// loseReply carries the call out and does not say so.
func loseReply(ctx context.Context, carryOut func(context.Context) error) error {
	if err := carryOut(ctx); err != nil {
		return err
	}
	return errWire
}

// faultyPool returns a pool in a declared namespace whose Puts may fail, and its store.
func faultyPool(t *testing.T) (worker.Registry, *onPut, *memory.Registry) {
	t.Helper()
	store, fault := memory.NewRegistry(), &onPut{}
	pool := worker.NewPool(memory.Intercept(store.Open(), fault.intercept))
	if err := pool.Init(t.Context(), poolSpace); err != nil {
		t.Fatal(err)
	}
	return pool, fault, store
}

func poolClaim(t *testing.T, p worker.Registry, req worker.Request) worker.Record {
	t.Helper()
	r, err := p.Claim(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func only(t *testing.T, p worker.Registry) worker.Record {
	t.Helper()
	records, err := p.List(t.Context())
	if err != nil || len(records) != 1 {
		t.Fatalf("List = %+v, %v; want one record", records, err)
	}
	return records[0]
}

// same compares a claim with its record in a list, which names no incarnation.
func same(claim, listed worker.Record) bool {
	claim.Incarnation = listed.Incarnation
	return claim == listed
}

func TestPoolClaimWhoseReplyIsLost(t *testing.T) {
	pool, fault, _ := faultyPool(t)
	fault.decide = loseReply
	req := poolRequest()
	if r, err := pool.Claim(t.Context(), req); !errors.Is(err, errWire) {
		t.Fatalf("Claim = %+v, %v; want the wire's error", r, err)
	}
	again := req
	again.Now, again.Bound = req.Now+9000, req.Bound+9000
	if got := poolClaim(t, pool, again); !same(got, only(t, pool)) || got.Bound != again.Bound {
		t.Errorf("Claim repeated = %+v; want the record %+v, with the T %d of the write that was acknowledged", got, only(t, pool), again.Bound)
	}
}

// TestPoolClaimThatIsNotOnTheStandby: PostgreSQL shows a commit whose wait for the standby has ended with the time of
// the call, and a failover loses it. A claim counts once a write of it was acknowledged, not once it can be read.
func TestPoolClaimThatIsNotOnTheStandby(t *testing.T) {
	pool, fault, _ := faultyPool(t)
	req := poolRequest()
	for range 3 {
		fault.decide = loseReply
		if r, err := pool.Claim(t.Context(), req); !errors.Is(err, errWire) {
			t.Fatalf("Claim = %+v, %v; want the wire's error while no write is acknowledged", r, err)
		}
	}
	if got := poolClaim(t, pool, req); !same(got, only(t, pool)) {
		t.Errorf("Claim repeated = %+v; want the record %+v", got, only(t, pool))
	}
}

// torn is a store that reads T after the claims, as that of ZooKeeper does. between comes between the two, once.
type torn struct {
	worker.Records

	between func()
}

func (s *torn) List(ctx context.Context) ([]worker.Record, error) {
	records, err := s.Records.List(ctx)
	if s.between == nil || err != nil {
		return records, err
	}
	s.between()
	s.between = nil
	later, err := s.Records.List(ctx)
	return memory.InParts(records, later), err
}

// TestPoolClaimWhoseTIsReadLater: the reply to a claim was lost, and its T has passed. Another process takes the
// number while the claim is repeated. Its T is not that of the claim, or both issue with the number.
func TestPoolClaimWhoseTIsReadLater(t *testing.T) {
	_, _, store := faultyPool(t)
	view := &torn{Records: store.Open()}
	pool, other := worker.NewPool(view), worker.NewPool(store.Open())
	req := poolRequest()
	req.Numbers.Hi = req.Numbers.Lo + 1
	poolClaim(t, pool, req)

	again := req
	again.Now = req.Bound + poolMargin
	again.Bound = again.Now + 60_000
	view.between = func() {
		theirs := again
		theirs.Nonce, theirs.Address = "theirs", "10.0.0.8:8080"
		poolClaim(t, other, theirs)
	}
	if r, err := pool.Claim(t.Context(), again); !errors.Is(err, worker.ErrFull) {
		t.Errorf("Claim repeated = %+v, %v; want ErrFull, because another process has the number", r, err)
	}
}

func TestPoolRenewalWhoseReplyIsLost(t *testing.T) {
	pool, fault, _ := faultyPool(t)
	own := poolClaim(t, pool, poolRequest())
	fault.decide = loseReply
	if r, err := pool.Renew(t.Context(), own, own.Bound+3000); !errors.Is(err, errWire) || r != own {
		t.Fatalf("Renew = %+v, %v; want %+v and the wire's error: nobody knows whether T was raised", r, err, own)
	}
	got, err := pool.Renew(t.Context(), own, own.Bound+1000)
	if err != nil || got.Bound != own.Bound+3000 || !same(got, only(t, pool)) {
		t.Errorf("Renew repeated = %+v, %v; want T %d", got, err, own.Bound+3000)
	}
}

// TestPoolLateRenewal: a renewal that arrives after its sender's next one, or after
// its release, changes nothing.
func TestPoolLateRenewal(t *testing.T) {
	for name, next := range map[string]func(worker.Registry, worker.Record) error{
		"after the next renewal": func(p worker.Registry, own worker.Record) error {
			_, err := p.Renew(context.Background(), own, own.Bound+1000)
			return err
		},
		"after the release": func(p worker.Registry, own worker.Record) error {
			return p.Release(context.Background(), own, poolNow+7)
		},
		"after the operator's release": func(p worker.Registry, own worker.Record) error {
			return p.Free(context.Background(), own.Number)
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool, fault, _ := faultyPool(t)
			own := poolClaim(t, pool, poolRequest())
			var late func(context.Context) error
			fault.decide = func(_ context.Context, carryOut func(context.Context) error) error {
				late = carryOut
				return errWire
			}
			if _, err := pool.Renew(t.Context(), own, own.Bound+9000); !errors.Is(err, errWire) {
				t.Fatal(err)
			}
			if err := next(pool, own); err != nil {
				t.Fatal(err)
			}
			before := only(t, pool)
			if err := late(t.Context()); !errors.Is(err, worker.ErrLost) {
				t.Errorf("the late renewal: %v; want ErrLost", err)
			}
			if after := only(t, pool); after != before {
				t.Errorf("the late renewal changed %+v to %+v", before, after)
			}
		})
	}
}

// TestPoolWipedMeanwhile: the registry is wiped after a claimer has read that the
// namespace need not wait, and before it writes its claim.
func TestPoolWipedMeanwhile(t *testing.T) {
	created := poolNow + 77_000 // by a third process, which makes the others wait
	for name, tt := range map[string]struct {
		before, after bool // whether somebody creates the namespace before and after the claim is written
		floor         int64
	}{
		"and the claimer creates it":            {floor: poolRequest().Quiet},
		"and somebody creates it":               {before: true, floor: created},
		"and somebody creates it after a write": {after: true, floor: created},
	} {
		t.Run(name, func(t *testing.T) {
			pool, fault, store := faultyPool(t)
			create := func() {
				if _, err := store.Open().Namespace(t.Context(), &worker.StoredNamespace{Namespace: poolSpace, IssueFrom: created}); err != nil {
					t.Fatal(err)
				}
			}
			fault.decide = func(ctx context.Context, carryOut func(context.Context) error) error {
				store.Wipe()
				if tt.before {
					create()
				}
				err := carryOut(ctx)
				if tt.after {
					create()
				}
				return err
			}
			req := poolRequest()
			req.Numbers = leaf.Range{Lo: 3, Hi: 4}
			own := poolClaim(t, pool, req)
			if own.Floor != tt.floor || own.Bound != tt.floor {
				t.Errorf("Claim = %+v; want floor and T %d", own, tt.floor)
			}
			if kept := only(t, pool); kept.Bound > own.Floor {
				t.Errorf("the store holds T %d, above the floor %d", kept.Bound, own.Floor)
			}
			if renewed, err := pool.Renew(t.Context(), own, own.Bound+1000); err != nil || !same(renewed, only(t, pool)) {
				t.Errorf("Renew = %+v, %v; the store holds %+v", renewed, err, only(t, pool))
			}

			pool, fault, store = faultyPool(t)
			fault.decide = func(ctx context.Context, carryOut func(context.Context) error) error {
				store.Wipe()
				create()
				return carryOut(ctx)
			}
			poolClaim(t, pool, req) // and its process dies
			req.Nonce, req.Now = "heir", created+poolMargin
			if got := poolClaim(t, pool, req); got.Floor != created {
				t.Errorf("the heir's claim = %+v; want the floor %d of the namespace", got, created)
			}
		})
	}
}

// TestPoolClaimLosesRounds: whoever loses a number to somebody faster looks again.
func TestPoolClaimLosesRounds(t *testing.T) {
	pool, fault, store := faultyPool(t)
	rival := worker.NewPool(store.Open())
	req := poolRequest()
	var taken []int64
	var snatch func(ctx context.Context, carryOut func(context.Context) error) error
	snatch = func(ctx context.Context, carryOut func(context.Context) error) error {
		other := req // the same nonce chooses the same number, and is then replaced
		r, err := rival.Claim(ctx, other)
		if err != nil {
			return err
		}
		store.Overwrite(r.Number, "rival")
		taken = append(taken, r.Number)
		if len(taken) < 3 {
			fault.decide = snatch
		}
		return carryOut(ctx)
	}
	fault.decide = snatch
	got := poolClaim(t, pool, req)
	if len(taken) != 3 || slices.Contains(taken, got.Number) {
		t.Errorf("Claim = %+v after rivals took %v", got, taken)
	}
	fault.decide = nil
	other := req
	other.Nonce = "one more"
	if r, err := pool.Claim(t.Context(), other); !errors.Is(err, worker.ErrFull) {
		t.Errorf("fifth Claim of four numbers = %+v, %v; want ErrFull", r, err)
	}
}

// rolledBack is a store that shows an earlier state of one record.
type rolledBack struct {
	worker.Records

	earlier *worker.Record
}

func (r rolledBack) List(ctx context.Context) ([]worker.Record, error) {
	records, err := r.Records.List(ctx)
	for i := range records {
		if r.earlier != nil && records[i].Number == r.earlier.Number {
			records[i].Bound = r.earlier.Bound
		}
	}
	return records, err
}

// TestPoolStoreRolledBack: a store that lost the last writes learns again what it has
// promised, whatever the renewal asks for.
func TestPoolStoreRolledBack(t *testing.T) {
	store := memory.NewRegistry()
	back := rolledBack{store.Open(), new(worker.Record)}
	pool := worker.NewPool(back)
	if err := pool.Init(t.Context(), poolSpace); err != nil {
		t.Fatal(err)
	}
	first := poolClaim(t, pool, poolRequest())
	own, err := pool.Renew(t.Context(), first, first.Bound+9000)
	if err != nil {
		t.Fatal(err)
	}
	*back.earlier = first
	stale := own
	stale.Version = "version that the store has forgotten"
	got, err := pool.Renew(t.Context(), stale, 0)
	if err != nil || got.Bound != own.Bound {
		t.Errorf("Renew = %+v, %v; want T %d", got, err, own.Bound)
	}
	*back.earlier = worker.Record{Number: -1}
	if kept := only(t, pool); kept.Bound != own.Bound {
		t.Errorf("the store holds T %d; want %d, which it has acknowledged", kept.Bound, own.Bound)
	}
}

// TestPoolRefusesItsOwnVersion: a store that contradicts itself must not spin.
func TestPoolRefusesItsOwnVersion(t *testing.T) {
	pool, fault, _ := faultyPool(t)
	own := poolClaim(t, pool, poolRequest())
	fault.decide = func(context.Context, func(context.Context) error) error { return worker.ErrLost }
	if r, err := pool.Renew(t.Context(), own, own.Bound+1000); err == nil || errors.Is(err, worker.ErrLost) {
		t.Errorf("Renew = %+v, %v; want an error that is not ErrLost", r, err)
	}
}

// mute is storage that answers no list.
type mute struct{ *records }

func (mute) List(ctx context.Context) ([]worker.Record, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// flaky is storage whose n-th call of one kind fails.
type flaky struct {
	*records

	namespace, list int // counts down to the call that fails
}

var errFlaky = errors.New("connection reset")

func (f *flaky) Namespace(ctx context.Context, want *worker.StoredNamespace) (*worker.StoredNamespace, error) {
	if f.namespace--; f.namespace == 0 {
		return nil, errFlaky
	}
	return f.records.Namespace(ctx, want)
}

func (f *flaky) List(ctx context.Context) ([]worker.Record, error) {
	if f.list--; f.list == 0 {
		return nil, errFlaky
	}
	return f.records.List(ctx)
}

// TestPoolCallFails: each call of a claim and of a renewal may fail; the claim can be
// repeated with the same nonce and is then the same one.
func TestPoolCallFails(t *testing.T) {
	request := worker.Request{
		Namespace: worker.Namespace{Name: "test", Fingerprint: "f"}, Address: "a:1", Nonce: "mine",
		Numbers: leaf.Range{Lo: 0, Hi: 4}, Now: 1_000_000, Bound: 2_000_000,
	}
	for name, storage := range map[string]*flaky{
		"namespace": {namespace: 1}, "list": {list: 1}, "namespace again": {namespace: 2},
	} {
		t.Run(name, func(t *testing.T) {
			storage.records = newRecords(worker.Leased)
			pool := worker.NewPool(storage)
			if r, err := pool.Claim(t.Context(), request); !errors.Is(err, errFlaky) {
				t.Fatalf("Claim = %+v, %v; want the failure", r, err)
			}
			r, err := pool.Claim(t.Context(), request)
			if err != nil || storage.used() != 1 {
				t.Fatalf("Claim = %+v, %v with %d numbers used; want one", r, err, storage.used())
			}
			// A renewal that finds another version looks for its record.
			r.Version = "another"
			storage.list = 1
			if _, err := pool.Renew(t.Context(), r, 3_000_000); !errors.Is(err, errFlaky) {
				t.Errorf("Renew = %v; want the failure", err)
			}
			if again, err := pool.Renew(t.Context(), r, 3_000_000); err != nil || again.Bound != 3_000_000 {
				t.Errorf("Renew = %+v, %v", again, err)
			}
		})
	}
}
