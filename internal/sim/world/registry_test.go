package world_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/internal/sim/world"
	"github.com/leaf-idgen/leaf/worker"
)

// registryWorld is a registry with one process beside it.
type registryWorld struct {
	*testing.T
	*world.Registry

	s    *sched.Scheduler
	p    *sched.Process
	link *world.Link
	pool worker.Registry
}

// withRegistry runs f in a process of a simulation, whose calls end after a second.
func withRegistry(t *testing.T, f func(w *registryWorld, ctx context.Context)) {
	t.Helper()
	s := sched.New(1)
	defer s.End()
	faults := &world.Faults{}
	server := &world.Server{Name: "registry"}
	w := &registryWorld{T: t, s: s, Registry: world.NewRegistry(s, server, faults, worker.Info{Name: "registry", Shared: true})}
	w.p = s.NewMachine("a", time.Unix(1_800_000_000, 0)).Boot()
	w.link = &world.Link{Server: server, Faults: faults}
	w.pool = worker.NewPool(w.Open(w.p, w.link))
	ended := false
	w.p.Go(func() {
		ctx, cancel := w.p.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		f(w, ctx)
		ended = true
	})
	s.Run(24 * time.Hour)
	if !ended {
		t.Error("the process did not come to its end")
	}
}

var prod = worker.Namespace{Name: "prod", Fingerprint: "layout"}

// claim claims one of ten numbers at moment 1000.
func (w *registryWorld) claim(ctx context.Context, nonce string) (worker.Record, error) {
	return w.pool.Claim(ctx, worker.Request{Namespace: prod, Address: "10.0.0.1:80", Nonce: nonce, Numbers: leaf.Range{Hi: 10}, Now: 1000, Bound: 61_000})
}

// TestRegistryTellsOfWrites: each one that took effect, with what was there before, also
// if the caller got an error.
func TestRegistryTellsOfWrites(t *testing.T) {
	withRegistry(t, func(w *registryWorld, ctx context.Context) {
		type change struct {
			by            *world.RegistryHandle
			before, after int64
		}
		var changes []change
		w.Wrote = func(by *world.RegistryHandle, before, after worker.Record) {
			changes = append(changes, change{by, before.Bound, after.Bound})
		}
		named := 0
		w.Named = func(*world.RegistryHandle, worker.StoredNamespace, time.Duration) { named++ }
		own, err := w.claim(ctx, "a")
		if err != nil {
			w.Fatal(err)
		}
		w.CommitError = 1
		if _, err := w.pool.Renew(ctx, own, 70_000); err == nil {
			w.Error("a commit with an unknown outcome is no error")
		}
		w.CommitError = 0
		if again, err := w.pool.Renew(ctx, own, 80_000); err != nil || again.Bound != 80_000 {
			w.Errorf("renewal after an unknown outcome: %+v, %v", again, err)
		}
		if err := w.Free(own.Number); err != nil {
			w.Error(err)
		}
		bounds := func(c change) [2]int64 { return [2]int64{c.before, c.after} }
		want := [][2]int64{{0, 61_000}, {61_000, 70_000}, {70_000, 80_000}, {80_000, 80_000}}
		for i, c := range changes {
			if i >= len(want) || bounds(c) != want[i] || (c.by == nil) != (i == 3) {
				w.Errorf("write %d: %+v", i, c)
			}
		}
		if len(changes) != len(want) || named != 1 {
			w.Errorf("%d writes and %d namespaces were told", len(changes), named)
		}
	})
}

// TestRegistryLoses: a restore says which T went back, and the owner notices.
func TestRegistryLoses(t *testing.T) {
	withRegistry(t, func(w *registryWorld, ctx context.Context) {
		own, err := w.claim(ctx, "a")
		if err != nil {
			w.Fatal(err)
		}
		b := w.Backup()
		own, err = w.pool.Renew(ctx, own, 70_000)
		if err != nil {
			w.Fatal(err)
		}
		second, err := w.claim(ctx, "b")
		if err != nil {
			w.Fatal(err)
		}
		lost := w.Restore(b, world.RegistryOld)
		slices.SortFunc(lost, func(a, b world.Lost) int { return int(a.From - b.From) })
		if want := []world.Lost{{second.Number, 61_000, 0}, {own.Number, 70_000, 61_000}}; !slices.Equal(lost, want) {
			w.Errorf("lost %+v, want %+v", lost, want)
		}
		if again, err := w.pool.Renew(ctx, own, 0); err != nil || again.Bound != 70_000 {
			w.Errorf("the owner's next renewal: %+v, %v", again, err)
		}
		if _, err := w.pool.Renew(ctx, second, 0); !errors.Is(err, worker.ErrLost) {
			w.Errorf("a claim that was lost is renewed: %v", err)
		}
	})
}

// TestRegistryAccidents: claims deleted and overwritten, the registry wiped.
func TestRegistryAccidents(t *testing.T) {
	for name, strike := range map[string]func(w *registryWorld, number int64){
		"claim deleted":     func(w *registryWorld, n int64) { w.DeleteClaim(n) },
		"claim overwritten": func(w *registryWorld, n int64) { w.Overwrite(n, "x") },
		"registry wiped":    func(w *registryWorld, _ int64) { w.Wipe() },
	} {
		t.Run(name, func(t *testing.T) {
			withRegistry(t, func(w *registryWorld, ctx context.Context) {
				own, err := w.claim(ctx, "a")
				if err != nil {
					w.Fatal(err)
				}
				strike(w, own.Number)
				r, known := w.Record(own.Number)
				if wiped := name == "registry wiped"; known == wiped || known && r.Bound != own.Bound || (w.Namespace() == nil) != wiped {
					w.Errorf("afterwards: %+v, %v", r, w.Namespace())
				}
				if _, err := w.pool.Renew(ctx, own, 0); !errors.Is(err, worker.ErrLost) {
					w.Errorf("renewal: %v", err)
				}
			})
		})
	}
}

// TestRegistryInParts: what takes a number between the two readings of a list gives it a T that is not that of the claim,
// and the version of no other reading.
func TestRegistryInParts(t *testing.T) {
	withRegistry(t, func(w *registryWorld, ctx context.Context) {
		own, err := w.claim(ctx, "a")
		if err != nil {
			w.Fatal(err)
		}
		w.InParts, w.link.Latency = true, time.Second
		store := w.Open(w.p, w.link)
		other := w.s.NewMachine("b", time.Unix(1_800_000_000, 0)).Boot()
		other.Go(func() {
			if err := other.Wait(ctx, nil, 1100*time.Millisecond); err != nil { // the first reading is done, and the second one is not
				w.Error(err)
			}
			taken := own
			taken.Nonce, taken.Bound = "b", own.Bound+1000
			near := w.Open(other, &world.Link{Server: w.Server, Faults: w.Faults})
			if _, err := near.Put(ctx, taken); err != nil {
				w.Error(err)
			}
		})
		torn, err := store.List(ctx)
		if err != nil || len(torn) != 1 || torn[0].Nonce != "a" || torn[0].Bound != own.Bound+1000 || w.Faults.Count(world.ReadInParts) != 1 {
			w.Fatalf("list = %+v, %v", torn, err)
		}
		if _, err := store.Put(ctx, torn[0]); !errors.Is(err, worker.ErrLost) {
			w.Errorf("a write by that list: %v", err)
		}
		whole, err := store.List(ctx)
		if err != nil || len(whole) != 1 || whole[0].Nonce != "b" || whole[0].Version == torn[0].Version {
			w.Errorf("list = %+v, %v after %+v", whole, err, torn)
		}
	})
}

// TestRegistrySessions: announcements end with their lease, late, or too early.
func TestRegistrySessions(t *testing.T) {
	withRegistry(t, func(w *registryWorld, ctx context.Context) {
		peer := worker.Peer{Address: "10.0.0.1:80", Nonce: "a"}
		announced := func(want bool, when string) {
			w.Helper()
			peers, err := w.pool.Peers(ctx)
			if err != nil || slices.Contains(peers, peer) != want {
				w.Errorf("%s: peers %+v, %v", when, peers, err)
			}
		}
		announce := func() {
			if err := w.pool.Announce(ctx, peer); err != nil {
				w.Fatal(err)
			}
		}
		announce()
		w.p.Sleep(14 * time.Second)
		announced(true, "within the lease")
		w.p.Sleep(2 * time.Second)
		announced(false, "after the lease")
		w.LateBy = time.Minute
		announce()
		w.p.Sleep(time.Minute)
		announced(true, "while its end is late")
		if !w.ExpireSession() {
			w.Error("there was no session")
		}
		announced(false, "after an early end")
		announce()
		if err := w.pool.Withdraw(ctx, peer); err != nil {
			w.Error(err)
		}
		announced(false, "withdrawn")
	})
}
