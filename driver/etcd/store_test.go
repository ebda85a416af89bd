package etcd_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// store returns a store that is closed at the end of the test.
func (p *place) store(t *testing.T) *etcd.Store {
	t.Helper()
	s, err := etcd.NewStore(p.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// putRow writes a row past all checks.
func (p *place) putRow(t *testing.T, row segment.Row) {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"max_id": strconv.FormatInt(row.MaxID, 10), "step": row.Step, "description": row.Description, "update_time": row.UpdateTime,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.put(t, p.prefix+"/rows/"+row.Tag, string(text))
}

func TestStoreConformance(t *testing.T) {
	ns := server.Etcd(t)
	var places atomic.Int64
	drivertest.Run(t, func(t *testing.T) drivertest.Backend {
		p := newPlace(t, ns.Servers, fmt.Sprintf("%s/segment/%d", ns.Root, places.Add(1)))
		s := p.store(t)
		return drivertest.Backend{
			Store:  s,
			Other:  func(t *testing.T) drivertest.Store { return p.store(t) },
			Put:    func(t *testing.T, row segment.Row) { p.putRow(t, row) },
			Record: func(t *testing.T, b segment.Binding) error { return s.RecordRule(t.Context(), b) },
		}
	})
}
