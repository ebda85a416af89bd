package zookeeper_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// TestKindsExcludeEachOther: a number that one kind of registry holds is not seen by the
// other one below the same name, so that refuses to start.
func TestKindsExcludeEachOther(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	kinds := map[string]func(*testing.T, place) worker.Registry{
		"zookeeper":         func(t *testing.T, p place) worker.Registry { return p.original(t) },
		"zookeeper-recycle": func(t *testing.T, p place) worker.Registry { return p.recycle(t) },
	}
	other := map[string]string{"zookeeper": "zookeeper-recycle", "zookeeper-recycle": "zookeeper"}
	for kind, open := range kinds {
		t.Run(kind, func(t *testing.T) {
			p := newPlace(t, ns)
			req := request("10.0.0.1:8080")
			req.Now = time.Now().UnixMilli()
			req.Bound, req.Quiet = req.Now+60_000, 0
			held, err := open(t, p).Claim(ctx(t), req)
			if err != nil {
				t.Fatal(err)
			}
			req.Address, req.Nonce = "10.0.0.2:8080", "other"
			if got, err := kinds[other[kind]](t, p).Claim(ctx(t), req); !errors.Is(err, worker.ErrTaken) || !strings.Contains(err.Error(), "--snowflake-registry "+kind) {
				t.Errorf("Claim beside %+v = %+v, %v", held, got, err)
			}
		})
	}
}
