package servertest

import (
	"net/http"
	"testing"
)

// StatusWith takes an ID of a tag over HTTP with a token, on a connection of its own, and returns the
// status of the reply.
func StatusWith(t testing.TB, addr, tag, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/api/segment/get/"+tag, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
