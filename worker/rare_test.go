package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// unreadable is a disk whose files exist and cannot be read.
type unreadable struct{ *disk }

func (unreadable) ReadFile(string) ([]byte, error) { return nil, errors.New("input/output error") }

// TestFileCannotBeRead: that is no missing file. The registry decides, and if it does
// not answer there is nothing.
func TestFileCannotBeRead(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a")
		h, err := worker.New(worker.NewPool(w.records), unreadable{n.disk}, n.cfg)
		if err != nil {
			w.t.Fatal(err)
		}
		n.Holder = h
		w.t.Cleanup(n.crash)
		w.records.breakOff(true)
		if err := h.Start(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		n.says(leaf.ErrNotReady, "read worker.json: input/output error")
		w.records.breakOff(false)
		time.Sleep(2 * time.Second)
		n.issue(10)
	})
}

// TestStartThatEnds: Start returns when its context does.
func TestStartThatEnds(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a")
		h, err := worker.New(worker.NewPool(mute{w.records}), n.disk, n.cfg)
		if err != nil {
			w.t.Fatal(err)
		}
		n.Holder = h
		w.t.Cleanup(n.crash)
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Millisecond)
		defer cancel()
		if err := h.Start(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "first claim") {
			w.t.Errorf("Start = %v", err)
		}
	})
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

// TestStaticNumberOutOfRange: the registry of a static number refuses one that is not
// among those of the layout.
func TestStaticNumberOutOfRange(t *testing.T) {
	r, err := worker.NewStatic(7).Claim(t.Context(), worker.Request{Numbers: leaf.Range{Lo: 0, Hi: 4}})
	if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), `worker-id="7"`) && !strings.Contains(err.Error(), "worker-id=7") {
		t.Errorf("Claim = %+v, %v", r, err)
	}
}
