package worker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// suspended is a registry whose claimer is suspended before it reads the records.
type suspended struct {
	*records
	sleep func()
}

func (s suspended) List(ctx context.Context) ([]worker.Record, error) {
	s.sleep()
	return s.records.List(ctx)
}

// TestClaimAcrossASuspension: the machine of a claimer is suspended within its claim, and
// the registry loses its records meanwhile. Numbers without a record wait from the moment
// at which the loss is seen: their owners have renewed since the claim began.
func TestClaimAcrossASuspension(t *testing.T) {
	const quiet, slept = 100_000, 75_000
	for name, lose := range map[string]func(*records){
		"registry wiped":  func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} },
		"records deleted": func(r *records) { r.byNum = map[int64]worker.Record{} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecords(worker.Leased)
			if err := worker.NewPool(r).Init(t.Context(), worker.Namespace{}); err != nil {
				t.Fatal(err)
			}
			request := func(nonce string) worker.Request {
				return worker.Request{Address: nonce, Nonce: nonce, Numbers: leaf.Range{Lo: 0, Hi: 8}, Now: 1000, Bound: 61_000, Quiet: quiet}
			}
			if _, err := worker.NewPool(r).Claim(t.Context(), request("a")); err != nil {
				t.Fatal(err)
			}
			var passed int64
			late := request("b")
			late.QuietLater = func() int64 { return quiet + passed }
			pool := worker.NewPool(suspended{r, func() {
				if passed == 0 {
					passed = slept
					r.set(lose)
				}
			}})
			own, err := pool.Claim(t.Context(), late)
			if err != nil || own.Floor != quiet+slept {
				t.Errorf("claim = %+v, %v; want the floor %d", own, err, quiet+slept)
			}
		})
	}
}

// delayed is a registry that a claimer reaches late: its first request to create the
// namespace is on its way, or its machine is suspended, while other things happen.
type delayed struct {
	*records
	meanwhile func()
	after     error // what the next call returns: the claimer crashes
}

func (d *delayed) Namespace(ctx context.Context, want *worker.StoredNamespace) (*worker.StoredNamespace, error) {
	if want != nil && d.meanwhile != nil {
		d.meanwhile()
		d.meanwhile = nil
	}
	return d.records.Namespace(ctx, want)
}

func (d *delayed) List(ctx context.Context) ([]worker.Record, error) {
	if d.after != nil {
		return nil, d.after
	}
	return d.records.List(ctx)
}

// TestNamespaceIsCreatedLate: the registry is wiped while the request that creates the
// namespace is on its way. The wait begins when the first claimer reads the namespace, which
// may be another one than the claimer that created it.
func TestNamespaceIsCreatedLate(t *testing.T) {
	const quiet, slept = 100_000, 75_000
	for name, after := range map[string]error{"claimer goes on": nil, "claimer crashes": errors.New("the process is gone")} {
		t.Run(name, func(t *testing.T) {
			r := newRecords(worker.Leased)
			if err := worker.NewPool(r).Init(t.Context(), worker.Namespace{}); err != nil {
				t.Fatal(err)
			}
			request := func(nonce string, now int64) worker.Request {
				return worker.Request{Address: nonce, Nonce: nonce, Numbers: leaf.Range{Lo: 0, Hi: 8}, Now: 1000 + now, Bound: 61_000 + now, Quiet: quiet + now}
			}
			var passed int64
			late := request("b", 0)
			late.QuietLater = func() int64 { return quiet + passed }
			way := &delayed{records: r, after: after, meanwhile: func() {
				passed = slept
				if _, err := worker.NewPool(r).Claim(t.Context(), request("a", slept)); err != nil { // issues from now on, below its T
					t.Error(err)
				}
				r.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
			}}
			own, err := worker.NewPool(way).Claim(t.Context(), late)
			if after != nil {
				if !errors.Is(err, after) {
					t.Fatalf("claim = %+v, %v", own, err)
				}
				own, err = worker.NewPool(r).Claim(t.Context(), request("c", slept))
			}
			if err != nil || own.Floor != quiet+slept {
				t.Errorf("claim = %+v, %v; want the floor %d", own, err, quiet+slept)
			}
		})
	}
}
