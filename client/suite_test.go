package client_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// startNode starts a real gRPC server on addr until the test ends or stop is called.
func startNode(t testing.TB, addr string, cfg grpcd.Config) (address string, stop func()) {
	t.Helper()
	s, err := grpcd.New(servertest.Listen(t, addr), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve() }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return s.Addr().String(), stop
}

// TestBehaviour holds the client to what every protocol promises.
func TestBehaviour(t *testing.T) {
	startAs := func(t testing.TB, a leaf.Access, shown leaf.Credentials) leaf.Issuers {
		address, _ := startNode(t, "127.0.0.1:0", grpcd.Config{Access: a, Logger: slog.New(slog.DiscardHandler)})
		c := newClient(t, client.Addresses(address), client.WithTimeout(100*time.Millisecond),
			client.WithToken(shown.Token), client.WithPlainToken(), client.WithName(shown.Name))
		return leaf.Issuers{Segment: c, Snowflake: c.Snowflake()}
	}
	servertest.Options{StartAs: startAs}.Run(t, func(t testing.TB, a leaf.Access) leaf.Issuers {
		return startAs(t, a, leaf.Credentials{})
	})
}
