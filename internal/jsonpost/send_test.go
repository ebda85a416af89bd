package jsonpost_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/jsonpost"
)

func TestSend(t *testing.T) {
	t.Parallel()
	var got, path string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got, path = r.Method+" "+r.Header.Get("Content-Type")+" "+string(body), r.URL.Path
		if path == "/here" {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(server.Close)
	status, err := jsonpost.Send(t.Context(), jsonpost.NewClient(), server.URL+"/here", map[string]int{"a": 1})
	if err != nil || status != http.StatusTemporaryRedirect || path != "/here" || got != `POST application/json {"a":1}` {
		t.Errorf("%d, %v; the server got %s at %s; want a redirect that is not followed", status, err, got, path)
	}
}

// TestErrorsHideTheURL: the path of a webhook or a collector may be a secret.
func TestErrorsHideTheURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, url string
		body      any
		request   bool // it cannot be made
	}{
		{"nobody listens", "http://127.0.0.1:1/secret", 1, false},
		{"no URL", "http://h/secret\x00", 1, true},
		{"no JSON", "http://127.0.0.1:1/secret", func() {}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := jsonpost.Send(t.Context(), jsonpost.NewClient(), tt.url, tt.body)
			if err == nil || strings.Contains(err.Error(), "secret") || errors.Is(err, jsonpost.ErrRequest) != tt.request {
				t.Errorf("%v", err)
			}
		})
	}
}
