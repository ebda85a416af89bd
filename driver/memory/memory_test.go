package memory_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(*testing.T) drivertest.Backend {
		s := memory.New()
		return drivertest.Backend{
			Store: s, Put: func(_ *testing.T, row segment.Row) { s.Put(row) },
			Record: func(_ *testing.T, b segment.Binding) error { return s.RecordRule(b) },
		}
	})
}
