package segment_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// TestClusterFenceTorture: nodes that share a fence load, stop and crash at random,
// and the fence fails with and without effect. Either the database goes back again
// and again, to be repaired, or the fence does: it is wiped, and nodes go on without
// it. No ID repeats, and a database that is well is never accused.
func TestClusterFenceTorture(t *testing.T) {
	seeds := long.Load(uint64(5), 300)
	for seed := range seeds {
		for _, lossy := range []string{"database", "fence"} {
			t.Run(fmt.Sprintf("%s goes back, seed %d", lossy, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { torture(t, rand.New(rand.NewPCG(seed, 3)), lossy == "database") })
			})
		}
	}
}

func torture(t *testing.T, r *rand.Rand, databaseGoesBack bool) {
	const nodes, rounds = 3, 60
	s, f, ids := newStore(row(7)), memory.NewFence(), newLedger()
	access, disks, running := [nodes]*shared{}, [nodes]*disk{}, [nodes]*segment.Allocator{}
	faults, mu := rand.New(rand.NewPCG(r.Uint64(), 5)), sync.Mutex{}
	fault := func(f *shared) {
		f.onSwap = func(_ context.Context, _ string, _ *fence.Entry, _ int64, do func() (fence.Entry, error)) (fence.Entry, error) {
			mu.Lock()
			kind := faults.IntN(4)
			mu.Unlock()
			switch kind {
			case 0:
				return fence.Entry{}, errDown
			case 1:
				_, err := do()
				return fence.Entry{}, errors.Join(err, errDown)
			}
			return do()
		}
	}
	start := func(i int) {
		cfg := fenced(fmt.Sprint(i), access[i], nil)
		cfg.MaxWait = 100 * time.Millisecond
		cfg.Degrade = !databaseGoesBack && r.IntN(2) == 0
		running[i] = node(t, s, disks[i], cfg)
	}
	for i := range nodes {
		access[i], disks[i] = sharing(f), newDisk()
		start(i)
	}
	regresses := 0
	for range rounds {
		i := r.IntN(nodes)
		switch r.IntN(10) {
		case 0:
			closeNode(t, running[i])
			start(i)
		case 1: // a crash: what it does from now on, nobody sees
			disks[i] = disks[i].copy()
			access[i].breakDown()
			access[i] = sharing(f)
			start(i)
		case 2:
			access[i].set(fault)
		case 3:
			access[i].heal()
		case 4:
			if !databaseGoesBack {
				f.Wipe()
			}
		case 5:
			if !databaseGoesBack {
				access[i].breakDown()
			}
		case 6, 7:
			if !databaseGoesBack {
				continue
			}
			s.Put(segment.Row{Tag: "order", MaxID: 1 + r.Int64N(s.maxID(t, "order")), Step: 7})
		}
		for n := range nodes {
			for range r.IntN(20) {
				id, err := running[n].Next(t.Context(), "order")
				if err == nil {
					ids.add(t, fmt.Sprint("node ", n), id)
					continue
				}
				if errors.Is(err, leaf.ErrRegress) {
					regresses++
					if _, err := running[n].Repair(t.Context(), "order", 0); err != nil && !errors.Is(err, leaf.ErrNotReady) {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
			}
		}
	}
	for i := range access {
		access[i].heal()
	}
	if databaseGoesBack != (regresses > 0) || ids.len() < rounds {
		t.Errorf("%d IDs, %d regresses", ids.len(), regresses)
	}
}
