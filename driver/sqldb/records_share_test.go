package sqldb_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// TestPrepare: only the process that made an embedded database may declare its
// namespace new.
func TestPrepare(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + t.TempDir() + "/leaf.db"
	for _, want := range []bool{true, false} {
		s := open(t, url)
		bind(t, s) // a start with segment mode makes the file before the registry is asked
		r, err := s.Records()
		if err != nil {
			t.Fatal(err)
		}
		if created, err := r.Prepare(t.Context()); err != nil || created != want {
			t.Errorf("Prepare = %v, %v; want %v", created, err, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.Rows(t.Context()); err != nil {
			t.Errorf("Rows after the shared registry was closed: %v", err)
		}
	}
	r := openRecords(t, "sqlite:"+t.TempDir()+"/leaf.db")
	if created, err := r.Prepare(t.Context()); err != nil || !created {
		t.Errorf("Prepare without a store = %v, %v; want true", created, err)
	}
	put(t, r, first())
}

// TestSharedFile: a registry that shares the file of a busy store is never refused.
func TestSharedFile(t *testing.T) {
	t.Parallel()
	s := open(t, "sqlite:"+t.TempDir()+"/leaf.db")
	bind(t, s)
	records, err := s.Records()
	if err != nil {
		t.Fatal(err)
	}
	if info := records.Info(); info.Shared || info.Kind != worker.Leased || info.Name != "sqlite" {
		t.Errorf("Info = %+v", info)
	}
	if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	r := put(t, records, first())
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.Reserve(ctx, request(7)); err != nil && ctx.Err() == nil {
					t.Errorf("Reserve: %v", err)
					return
				}
			}
		})
	}
	for range 50 {
		r.Bound += 1000
		r = put(t, records, r)
	}
	cancel()
	group.Wait()
}

// TestOwnConnections: tags whose rows are locked keep all connections of the store,
// and none of the registry.
func TestOwnConnections(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	applySchema(t, d.URL())
	w := startWire(t, d)
	s, err := sqldb.Open(d.Via(w.Addr()).URL(), sqldb.Config{MaxConns: 1, ConnectTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	records, err := s.Records()
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan struct{})
	w.SetHook(func(from proxy.Side, data []byte) proxy.Action {
		if from == proxy.Client && bytes.Contains(data, []byte("leaf_alloc")) {
			close(waits)
			return proxy.Drop
		}
		return proxy.Pass
	})
	ended := make(chan error)
	go func() { _, err := s.Reserve(ctx, request(7)); ended <- err }()
	<-waits
	put(t, records, first())
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Reserve: %v; want Canceled", err)
	}
}
