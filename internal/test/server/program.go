package server

import "testing"

// Program returns the path of a program that a test runs and that is in a Debian package.
// Without it the test is skipped, and fails with CI=true; with -short it is skipped.
func Program(t testing.TB, binary, debianPackage string) string {
	t.Helper()
	if testing.Short() {
		t.Skipf("-short: needs the program %s; run make test", binary)
	}
	path, err := find(binary, debianPackage)
	if err != nil {
		missing(t, err)
	}
	return path
}
