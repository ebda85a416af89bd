package memory_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment/fence"
)

func TestClusterFence(t *testing.T) {
	drivertest.RunClusterFence(t, func(*testing.T) drivertest.FenceBackend {
		f := memory.NewFence()
		return drivertest.FenceBackend{
			Fence: f,
			Other: func(*testing.T) fence.Cluster { return f },
			Wipe:  func(*testing.T) { f.Wipe() },
		}
	})
}
