package requestid_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/requestid"
)

const (
	trace       = "4bf92f3577b34da6a3ce929d0e0e4736"
	traceparent = "00-" + trace + "-00f067aa0ba902b7-01"
)

var ids = []struct {
	name, id, traceparent, want string
}{
	{"nothing", "", "", ""},
	{"an ID", "abc-1", "", "abc-1"},
	{"an ID before a trace", "abc-1", traceparent, "abc-1"},
	{"a load balancer's", "Root=1-67891233-abcdef012345678912345678;o=1", "", "Root=1-67891233-abcdef012345678912345678;o=1"},
	{"the longest", strings.Repeat("i", 128), "", strings.Repeat("i", 128)},
	{"too long", strings.Repeat("i", 129), "", ""},
	{"a space", "a b", "", ""},
	{"a quote", `a"b`, "", ""},
	{"a line end", "a\nb", "", ""},
	{"no ASCII", "é", "", ""},
	{"a trace", "", traceparent, trace},
	{"a trace beside an ID that is not sane", "a b", traceparent, trace},
	{"a later version with more", "", "01-" + trace + "-00f067aa0ba902b7-01-more", trace},
	{"the first version with more", "", traceparent + "-more", ""},
	{"a later version without a hyphen", "", "01-" + trace + "-00f067aa0ba902b7-01more", ""},
	{"version ff", "", "ff-" + trace + "-00f067aa0ba902b7-01", ""},
	{"a trace of zeros", "", "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", ""},
	{"capitals", "", "00-" + strings.ToUpper(trace) + "-00f067aa0ba902b7-01", ""},
	{"too short", "", traceparent[:54], ""},
	{"hyphens at other places", "", "00" + trace + "--00f067aa0ba902b7-01", ""},
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, tt := range ids {
		if got := requestid.Of(tt.id, tt.traceparent); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if got := requestid.Of([]byte(tt.id), []byte(tt.traceparent)); string(got) != tt.want {
			t.Errorf("%s, as bytes: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// FuzzOf: an ID is a part of what was brought, and may stand in a field of HTTP and in a log.
func FuzzOf(f *testing.F) {
	for _, tt := range ids {
		f.Add(tt.id, tt.traceparent)
	}
	f.Fuzz(func(t *testing.T, id, traceparent string) {
		got := requestid.Of(id, traceparent)
		if got != "" && got != id && !strings.Contains(traceparent, got) {
			t.Errorf("%q is neither in %q nor in %q", got, id, traceparent)
		}
		if len(got) > 128 || strings.ContainsFunc(got, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'`<>\\%,", r) }) {
			t.Errorf("%q is not sane", got)
		}
	})
}

// TestShow: what a request brings is in its context and in the reply.
func TestShow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		fields http.Header
		needed bool
		length int // of the ID
		want   string
	}{
		{"an ID", http.Header{"X-Request-Id": {"abc-1"}}, false, 5, "abc-1"},
		{"two", http.Header{"X-Request-Id": {"abc-1", "abc-1"}}, false, 0, ""},
		{"a trace", http.Header{"Traceparent": {traceparent}}, false, 32, trace},
		{"none", nil, false, 0, ""},
		{"none, and one is needed", nil, true, 32, ""},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header = tt.fields
		id := requestid.ID(requestid.Show(w, r, tt.needed).Context())
		if len(id) != tt.length || tt.want != "" && id != tt.want || w.Header().Get("X-Request-Id") != id {
			t.Errorf("%s: %q, and the reply has %v", tt.name, id, w.Header())
		}
	}
	if a, b := requestid.New(), requestid.New(); a == b {
		t.Errorf("two requests are both %q", a)
	}
	if id := requestid.ID(context.Background()); id != "" {
		t.Errorf("no request, and the ID %q", id)
	}
}
