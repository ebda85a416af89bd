package long

import "testing"

// Plain skips a test where the race detector runs, unless make test-long asks for it: next to nothing of what the test
// does happens at once, or the detector would only repeat what smaller tests show it. A test that calls Plain needs no
// server, so that make check runs it, and make test does so beside its tests with the detector.
func Plain(t *testing.T) {
	t.Helper()
	if Raced && !Asked() {
		t.Skip("with the race detector only in make test-long")
	}
}
