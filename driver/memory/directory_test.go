package memory_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/memory"
)

func TestDirectory(t *testing.T) {
	drivertest.RunDirectory(t, func(*testing.T) drivertest.DirectoryBackend {
		d := memory.NewDirectory(nil)
		return drivertest.DirectoryBackend{
			Directory: d,
			Other:     func(*testing.T) discovery.Directory { return d.Open() },
			Plant:     func(_ *testing.T, id, text string) { d.Plant(id, text) },
		}
	})
}
