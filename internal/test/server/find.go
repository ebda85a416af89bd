package server

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
)

// ErrMissing means that a server's binary is not on this machine. The error
// that wraps it names the Debian package to install.
var ErrMissing = errors.New("server is not installed")

// systemFolders hold server binaries that a user's PATH often leaves out. Of
// several PostgreSQL releases the newest is taken.
var systemFolders = []string{"/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/lib/postgresql/*/bin"}

// find returns the path of a binary on PATH or in a system folder.
func find(binary, debianPackage string) (string, error) {
	if p, err := exec.LookPath(binary); err == nil {
		return filepath.EvalSymlinks(p)
	}
	for _, folder := range systemFolders {
		found, err := filepath.Glob(filepath.Join(folder, binary))
		if err != nil || len(found) == 0 {
			continue
		}
		return filepath.EvalSymlinks(slices.MaxFunc(found, byRelease))
	}
	return "", fmt.Errorf("%s: %w: install the Debian package %s", binary, ErrMissing, debianPackage)
}

// byRelease orders .../9/bin before .../15/bin.
func byRelease(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
