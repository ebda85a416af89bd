package client_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/client"
)

// TestOtherNodeReturns: the one node that works is one that has failed until a moment
// ago, and the other, which nobody suspects, stops without a word. No call takes more
// than 1.5 s, however long the first had been away.
func TestOtherNodeReturns(t *testing.T) {
	for _, fault := range []struct {
		name         string
		fail, repair func(*fake)
	}{
		{"killed", func(f *fake) { f.set(func(f *fake) { f.down = true }) }, func(f *fake) { f.set(func(f *fake) { f.down = false }) }},
		{"stopped", (*fake).freeze, (*fake).thaw},
		{"draining", func(f *fake) { f.set(func(f *fake) { f.draining = true }) }, func(f *fake) { f.set(func(f *fake) { f.draining = false }) }},
	} {
		for _, zone := range []string{"x", "y"} {
			for _, away := range []time.Duration{200 * time.Millisecond, 1100 * time.Millisecond, 4 * time.Second, 12 * time.Second} {
				t.Run(fmt.Sprintf("%s in %s for %v", fault.name, zone, away), func(t *testing.T) {
					t.Parallel()
					bubble(t, func(t *testing.T) {
						cl := newCluster(node("a", "x", 100), node("b", zone, 100))
						a, b := cl.nodes["a"], cl.nodes["b"]
						c := cl.client(t, client.WithZone("x"))
						synctest.Wait()
						fault.fail(b)
						for end := time.Now().Add(away); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
							calls(t, c, 1)
						}
						fault.repair(b)
						a.freeze()
						var callers sync.WaitGroup
						for range 20 {
							callers.Go(func() {
								start := time.Now()
								calls(t, c, 1)
								if took := time.Since(start); took > 1500*time.Millisecond {
									t.Errorf("a call took %v", took)
								}
							})
							time.Sleep(100 * time.Millisecond)
						}
						callers.Wait()
						a.thaw()
					})
				})
			}
		}
	}
}
