package admin_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/server/admin"
)

// TestStartStopStress: a server that is stopped at any moment, before and while it serves
// and answers, ends without an error and leaves nothing behind (see TestMain). Stop may
// come twice.
func TestStartStopStress(t *testing.T) {
	t.Parallel()
	for round := range 60 {
		ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := admin.NewServer(&mirror{}, admin.Config{Logger: slog.New(slog.DiscardHandler), TCP: &admin.TCP{Tokens: auth.NewAdminTokens("s3cret")}})
		served := make(chan error, 1)
		go func() { served <- s.Serve(ln) }()
		var clients sync.WaitGroup
		for range round % 4 {
			clients.Go(func() {
				tr := &http.Transport{}
				defer tr.CloseIdleConnections()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+ln.Addr().String()+"/v1/info", nil)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer s3cret")
				reply, err := tr.RoundTrip(req)
				if err != nil {
					return // the server was stopped first
				}
				reply.Body.Close()
				if reply.StatusCode != http.StatusOK {
					t.Errorf("round %d: status %d", round, reply.StatusCode)
				}
			})
		}
		if round%2 == 0 {
			clients.Wait()
		}
		for range 2 {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			if err := s.Stop(ctx); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			cancel()
		}
		if err := <-served; err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		clients.Wait()
	}
}
