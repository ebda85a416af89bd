package app_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/manage"
)

// TestDrain: a node that drains is not ready at once, serves for its delay, and then
// ends; what it did not use goes back.
func TestDrain(t *testing.T) {
	t.Parallel()
	a, stop := start(t, embedded(shortDir(t)))
	const path = "/api/segment/get/leaf-segment-test"
	get(t, a, path)
	if err := manage.Tell(t.Context(), a.Backend(), manage.Drain{Delay: 500 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	<-a.DrainAsked()
	began := time.Now()
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	for {
		status, body := get(t, a, "/readyz")
		if status == http.StatusServiceUnavailable {
			if !strings.Contains(body, "the node is being stopped: not ready any more, waiting for clients to move") {
				t.Errorf("readyz says %s", body)
			}
			break
		}
	}
	reply, err := http.Get("http://" + a.Addr() + path)
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	if !reply.Close && time.Since(began) < 400*time.Millisecond {
		t.Error("a reply during the delay does not end its connection: its client would stay to the end")
	}
	if status, body := get(t, a, path); status != http.StatusOK && time.Since(began) < 400*time.Millisecond {
		t.Errorf("an ID during the delay: %d %s", status, body)
	}
	<-stopped
	if d := time.Since(began); d < 500*time.Millisecond {
		t.Errorf("stopped after %v, before the delay", d)
	}
}

func TestDrainRefusesALongDelay(t *testing.T) {
	t.Parallel()
	a, _ := start(t, embedded(shortDir(t)))
	err := manage.Tell(t.Context(), a.Backend(), manage.Drain{Delay: time.Hour})
	if err == nil || !strings.Contains(err.Error(), `delay="1h0m0s": must be at most 10m`) {
		t.Errorf("Drain(1h) = %v", err)
	}
	select {
	case <-a.DrainAsked():
		t.Error("the node drains all the same")
	default:
	}
}

// TestAdminOverTCP: the listener for administration serves the same as the socket, to
// admin.token and not to auth.token, which every client has. Beside it there are
// health checks and metrics.
func TestAdminOverTCP(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Auth.Tokens, c.Admin.Tokens = []string{"client"}, []string{"s3cret"}
	a, _ := start(t, c)
	for _, tt := range []struct {
		server, path, token, want string
		status                    int
	}{
		{"admin", "/v1/info", "s3cret", `"stage":"serving"`, http.StatusOK},
		{"admin", "/healthz", "s3cret", "ok", http.StatusOK},
		{"admin", "/readyz", "s3cret", "ready: true", http.StatusOK},
		{"admin", "/metrics", "s3cret", "leaf_build_info", http.StatusOK},
		{"admin", "/v1/info", "client", "unauthenticated", http.StatusUnauthorized},
		{"http", "/api/segment/get/leaf-segment-test", "client", "1", http.StatusOK},
		{"http", "/api/segment/get/leaf-segment-test", "s3cret", "unauthenticated", http.StatusUnauthorized},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.AddrOf(tt.server)+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+tt.token)
		tr := &http.Transport{DisableKeepAlives: true}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != tt.status || !strings.Contains(string(body), tt.want) {
			t.Errorf("GET %s of %s with the token %s: %d %.200s, want %d %q", tt.path, tt.server, tt.token, resp.StatusCode, body, tt.status, tt.want)
		}
	}
}
