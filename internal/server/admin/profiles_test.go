package admin_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/server/admin"
)

// TestProfiles: profiles are there only if they are switched on, and only for a token.
func TestProfiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, token, path string
		on                bool
		want              int
	}{
		{"off", "s3cret", "/debug/pprof/", false, 404},
		{"no token", "", "/debug/pprof/", true, 401},
		{"wrong token", "s3cre", "/debug/pprof/heap", true, 401},
		{"the list", "s3cret", "/debug/pprof/", true, 200},
		{"a profile", "s3cret", "/debug/pprof/goroutine?debug=1", true, 200},
		{"the CPU", "s3cret", "/debug/pprof/profile?seconds=1", true, 200},
		{"the command line, which may hold a password", "s3cret", "/debug/pprof/cmdline", true, 404},
		{"what else there is", "s3cret", "/v1/info", true, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := admin.NewServer(&mirror{}, admin.Config{Logger: slog.New(slog.DiscardHandler), TCP: &admin.TCP{Tokens: auth.NewAdminTokens("s3cret"), Profiles: tt.on}})
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, tt.path, nil)
			if tt.token != "" {
				r.Header.Set("Authorization", "Bearer "+tt.token)
			}
			w := httptest.NewRecorder()
			admin.HandlerOf(s).ServeHTTP(w, r)
			body, _ := io.ReadAll(w.Body)
			if w.Code != tt.want || tt.want == 200 && strings.Contains(tt.path, "goroutine") && !strings.Contains(string(body), "goroutine profile") {
				t.Errorf("status %d, want %d: %.200s", w.Code, tt.want, body)
			}
		})
	}
}
