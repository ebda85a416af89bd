package server

import "testing"

// Chromium returns the path of a Chromium browser, for tests that drive one. Without it the
// test is skipped, and fails with CI=true.
func Chromium(t testing.TB) string {
	t.Helper()
	skipIfShort(t, "Chromium")
	path, err := find("chromium", "chromium")
	if err != nil {
		missing(t, err)
	}
	return path
}
