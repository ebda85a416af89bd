package admin_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
)

// slowSite says when a request has come in, and answers when it is let go.
type slowSite struct {
	entered chan reflect.Type
	release chan struct{}
}

func (s slowSite) Do(ctx context.Context, request any) (any, error) {
	op, err := manage.Of(request)
	if err != nil {
		return nil, err
	}
	s.entered <- op.Request
	select {
	case <-s.release:
	case <-ctx.Done():
	}
	return reflect.Zero(op.Reply).Interface(), nil
}

// TestManyReaders: of many requests with a token that may only read, two run at a time: they share the
// connections of loads and renewals. An administrator does not wait for them.
func TestManyReaders(t *testing.T) {
	t.Parallel()
	secret, digest := auth.NewSecret()
	named := auth.NewNamed()
	named.Set([]auth.Token{{Name: "reader", Digest: digest, Roles: auth.Roles{Read: true}}}, time.Now())
	const readers = 6
	site := slowSite{make(chan reflect.Type, readers+1), make(chan struct{})}
	s := admin.NewServer(site, admin.Config{Logger: slog.New(slog.DiscardHandler), TCP: &admin.TCP{Tokens: auth.NewAdminTokens(token).WithNamed(named, nil)}})
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	ask := func(path, token string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+ln.Addr().String()+path, nil)
		if err != nil {
			t.Error(err)
			return 0
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			if status := ask("/v1/workers", secret); status != http.StatusOK {
				t.Errorf("a reader got %d", status)
			}
		})
	}
	<-site.entered
	<-site.entered
	select {
	case <-site.entered:
		t.Error("a third request of a reader runs beside two others")
	case <-time.After(200 * time.Millisecond): // long enough to see it where nothing holds it
	}
	all.Go(func() {
		if status := ask("/v1/info", token); status != http.StatusOK {
			t.Errorf("an administrator got %d", status)
		}
	})
	if got := <-site.entered; got != reflect.TypeFor[manage.GetInfo]() {
		t.Errorf("beside two readers %v runs, want the request of the administrator", got)
	}
	close(site.release)
	all.Wait()
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
