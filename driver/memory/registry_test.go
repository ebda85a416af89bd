package memory_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/worker"
)

func TestRegistryConformance(t *testing.T) {
	drivertest.RunRegistry(t, func(*testing.T) drivertest.RegistryTarget {
		registry := memory.NewRegistry()
		var hole blackHole
		return drivertest.RegistryTarget{
			Open: func(*testing.T) worker.Registry {
				return worker.NewPool(memory.Intercept(registry.Open(), hole.intercept))
			},
			DeleteClaim: func(_ *testing.T, number int64) { registry.DeleteClaim(number) },
			Overwrite:   func(_ *testing.T, number int64, nonce string) { registry.Overwrite(number, nonce) },
			Garble:      func(_ *testing.T, number int64) { registry.Garble(number) },
			Forget:      func(*testing.T) { registry.Forget() },
			Reset:       func(*testing.T, string) { registry.Rename() },
			Wipe:        func(*testing.T) { registry.Wipe() },
			Partition:   func(*testing.T) func() { return hole.open(false) },
			Pause:       func(*testing.T) func() { return hole.open(true) },
			Lease:       1, // announcements end with their handle
		}
	})
}

// blackHole swallows calls while it is open.
type blackHole struct {
	mu    sync.Mutex
	isOn  bool
	keeps bool     // calls are carried out when the hole closes
	kept  []func() // those calls
}

func (h *blackHole) open(keeps bool) (closeIt func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isOn, h.keeps = true, keeps
	return func() {
		h.mu.Lock()
		h.isOn = false
		kept := h.kept
		h.mu.Unlock()
		for _, carryOut := range kept {
			carryOut()
		}
	}
}

func (h *blackHole) intercept(ctx context.Context, _ string, carryOut func(context.Context) error) error {
	h.mu.Lock()
	swallowed := h.isOn
	if swallowed && h.keeps {
		later := context.WithoutCancel(ctx)
		h.kept = append(h.kept, func() { _ = carryOut(later) }) // nobody is there to learn the outcome
	}
	h.mu.Unlock()
	if !swallowed {
		return carryOut(ctx)
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestRegistryBackup: claims and bounds go back, versions do not.
func TestRegistryBackup(t *testing.T) {
	registry := memory.NewRegistry()
	h, ctx := registry.Open(), t.Context()
	put := func(r worker.Record) worker.Record {
		t.Helper()
		version, err := h.Put(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		r.Version = version
		return r
	}
	first := put(worker.Record{Number: 1, Nonce: "a", Bound: 10})
	restore := registry.Backup()
	lost := put(worker.Record{Number: 1, Nonce: "a", Bound: 20, Version: first.Version})
	put(worker.Record{Number: 2, Nonce: "b", Bound: 30})
	restore()
	records, err := h.List(ctx)
	if err != nil || len(records) != 1 || records[0] != first {
		t.Fatalf("after the restore: %+v, %v", records, err)
	}
	if _, err := h.Put(ctx, lost); !errors.Is(err, worker.ErrLost) {
		t.Errorf("a lost write is built upon: %v", err)
	}
	if again := put(worker.Record{Number: 1, Nonce: "c", Bound: 20, Version: first.Version}); again.Version == lost.Version {
		t.Errorf("version %s is used twice", again.Version)
	}
	restore()
	if records, _ := h.List(ctx); len(records) != 1 || records[0] != first {
		t.Errorf("the backup has changed: %+v", records)
	}
}
