package httpd_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

// TestReadinessByMode: a mode that waits takes the node out of the load balancer that asks
// for this mode, and of no other one.
func TestReadinessByMode(t *testing.T) {
	t.Parallel()
	state := leaf.Readiness{
		Segment:   leaf.ModeReadiness{Enabled: true, Ready: true},
		Snowflake: leaf.ModeReadiness{Enabled: true, Reasons: []string{"waits"}},
		Cluster:   "c1",
	}
	h := httpd.Handler(quiet(httpd.Config{Access: leaf.Anyone(newIssuer(), newIssuer()), Ready: func() leaf.Readiness { return state }}))
	for _, tt := range []struct {
		query  string
		status int
	}{
		{"", http.StatusOK},
		{"?mode=segment", http.StatusOK},
		{"?mode=snowflake", http.StatusServiceUnavailable},
		{"?mode=other", http.StatusBadRequest},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz"+tt.query, nil))
		var body struct {
			Ready   bool
			Cluster string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		if w.Code != tt.status || body.Ready != (tt.status == http.StatusOK) || tt.status != http.StatusBadRequest && body.Cluster != "c1" {
			t.Errorf("/readyz%s: %d %s, want %d", tt.query, w.Code, w.Body, tt.status)
		}
	}
}
