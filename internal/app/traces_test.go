package app_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// TestTraces: a node sends spans of its claim, of a load and of a change, the change below the span
// of the caller, and none of what only looks or issues.
func TestTraces(t *testing.T) {
	t.Parallel()
	var got lockedBuffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(&got, r.Body) }))
	defer collector.Close()
	c := embedded(shortDir(t))
	c.Admin.Tokens = []string{"s3cret"}
	c.Trace.URL = collector.URL + "/v1/traces"
	a, stop := start(t, c)
	if status, body := get(t, a, "/api/segment/get/leaf-segment-test"); status != http.StatusOK {
		t.Fatal(body)
	}
	admin := &http.Transport{}
	defer admin.CloseIdleConnections()
	for _, request := range []string{"GET /v1/tags", `POST /v1/tag {"tag":"order","step":100}`} {
		method, rest, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(rest, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.AddrOf("admin")+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer s3cret")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		resp, err := admin.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", request, said)
		}
	}
	stop()
	text := got.String()
	for _, want := range []string{
		`"name":"worker claim","kind":3`, `"key":"leaf.registry","value":{"stringValue":"sqlite"}`,
		`"name":"segment load","kind":3`, `"key":"leaf.tag","value":{"stringValue":"leaf-segment-test"}`, `"key":"leaf.range"`,
		`"parentSpanId":"00f067aa0ba902b7","name":"POST /v1/tag","kind":2`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	names := regexp.MustCompile(`"name":"(GET|POST|PATCH) [^"]*"`).FindAllString(text, -1)
	if len(names) != 1 {
		t.Errorf("spans of %q", names)
	}
}
