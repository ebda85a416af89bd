package httpd_test

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

// TestRequestIDs: a reply shows the ID that its request brings. Without one it shows none, unless
// the log has a line about the request.
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	const trace = "Traceparent: 00-" + broughtTrace + "-00f067aa0ba902b7-01"
	made := regexp.MustCompile(`^[0-9a-f]{32}$`)
	for _, tt := range []struct {
		name   string
		every  bool // Config.RequestIDs
		tag    string
		fields []string
		want   string // "*": one that was made
	}{
		{"none", false, "order", []string{"Via: x"}, ""},
		{"one", false, "order", []string{"X-Request-Id: abc-1"}, "abc-1"},
		{"of a trace", false, "order", []string{trace}, broughtTrace},
		{"both", false, "order", []string{trace, "X-Request-Id: abc-1"}, "abc-1"},
		{"one between spaces", false, "order", []string{"X-Request-Id:  abc-1 "}, "abc-1"},
		{"a trace with a space behind it", false, "order", []string{trace + " "}, broughtTrace},
		{"one that is not sane", false, "order", []string{"X-Request-Id: a b"}, ""},
		{"one that is not sane, and a trace", false, "order", []string{"X-Request-Id: <script>", trace}, broughtTrace},
		{"two", false, "order", []string{"X-Request-Id: a", "X-Request-Id: b"}, ""},
		{"of an error", false, "err.not_ready", []string{"X-Request-Id: abc-1"}, "abc-1"},
		{"of an internal error", false, "err.internal", []string{"X-Request-Id: abc-1"}, "abc-1"},
		{"none, an error", false, "err.not_ready", []string{"Via: x"}, ""},
		{"none, an internal error", false, "err.internal", []string{"Via: x"}, "*"},
		{"none, every request gets one", true, "order", []string{"Via: x"}, "*"},
		{"one, every request has one", true, "order", []string{"X-Request-Id: abc-1"}, "abc-1"},
	} {
		for _, path := range paths {
			t.Run(tt.name+", "+path.name, func(t *testing.T) {
				t.Parallel()
				var log bytes.Buffer
				i := newIssuer()
				c := dial(t, start(t, httpd.Config{Access: leaf.Anyone(i, i), RequestIDs: func() bool { return tt.every }, Logger: slog.New(slog.NewTextHandler(&log, nil))}))
				c.send(with(path.get(tt.tag), tt.fields...))
				got := c.reply().header.Get("X-Request-Id")
				if tt.want == "*" && !made.MatchString(got) || tt.want != "*" && got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				if tt.tag == "err.internal" && !strings.Contains(log.String(), "request="+got) {
					t.Errorf("the log does not have %q:\n%s", got, &log)
				}
			})
		}
	}
}
