package etcd_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// target returns the registry of a place.
func (p *place) target() drivertest.RegistryTarget {
	return drivertest.RegistryTarget{
		Open:        p.open,
		DeleteClaim: p.deleteClaim,
		Overwrite:   p.overwrite,
		Garble: func(t *testing.T, number int64) {
			t.Helper()
			p.put(t, fmt.Sprintf("%s/bounds/%d", p.prefix, number), "soon")
		},
		Forget:    p.forget,
		Reset:     p.reset,
		Wipe:      p.wipe,
		Partition: func(*testing.T) func() { return p.partition() },
		Lease:     2 * time.Second,
	}
}

func TestConformance(t *testing.T) {
	ns := server.Etcd(t)
	var places atomic.Int64
	drivertest.RunRegistry(t, func(t *testing.T) drivertest.RegistryTarget {
		return newPlace(t, ns.Servers, fmt.Sprintf("%s/%d", ns.Root, places.Add(1))).target()
	})
}

// TestOutages runs on three nodes, of which all hang or none.
func TestOutages(t *testing.T) {
	e := server.OwnEtcd(t, 3)
	defer e.Kill() // three nodes that leave in good order take 6 s
	var places atomic.Int64
	drivertest.RunRegistryOutages(t, func(t *testing.T) drivertest.RegistryTarget {
		target := newPlace(t, e.Servers(), fmt.Sprintf("/outage/%d", places.Add(1))).target()
		target.Pause = func(*testing.T) func() {
			e.Pause()
			return func() { e.Resume() }
		}
		return target
	})
}
