package etcd_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

// TestUnreachable: the error says where the etcd is that cannot be reached, and why.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts no connection
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for _, tt := range []struct{ name, endpoint, why string }{
		{"refused", port.Unused(t), "connection refused: context deadline exceeded"},
		{"silent", silent.Addr().String(), "context deadline exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			records, err := etcd.NewRecords(etcd.Config{Endpoints: []string{tt.endpoint}, Prefix: "/leaf"})
			if err != nil {
				t.Fatal(err)
			}
			defer records.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err = records.List(ctx)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("List: %v; want the end of the time", err)
			}
			text := strings.ReplaceAll(err.Error(), `"`, "")
			if !strings.Contains(text, "etcd ["+tt.endpoint+"]: ") || !strings.HasSuffix(text, tt.why) {
				t.Errorf("List: %v; want the endpoint %s and %q", err, tt.endpoint, tt.why)
			}
		})
	}
}

// TestClientPanics: a panic of the library while it connects is the error of the call that waits.
func TestClientPanics(t *testing.T) {
	t.Parallel()
	if err := etcd.Panic(t.Context()); err == nil || !strings.Contains(err.Error(), "the etcd client panicked") {
		t.Errorf("%v; want the panic", err)
	}
}

// TestFull: the error of an etcd that takes no more writes says what to do.
func TestFull(t *testing.T) {
	t.Parallel()
	for _, err := range []error{rpctypes.ErrNoSpace, rpctypes.ErrGRPCNoSpace} {
		if got := etcd.Explain(err); !errors.Is(got, err) || !strings.Contains(got.Error(), "space exceeded: ") || !strings.Contains(got.Error(), "--auto-compaction-retention=1h") {
			t.Errorf("%v; want the cure", got)
		}
	}
	if got := etcd.Explain(rpctypes.ErrNotLeader).Error(); strings.Contains(got, "compact") {
		t.Errorf("%s; want no cure of another fault", got)
	}
}
