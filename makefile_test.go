package leaf_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	quietPackages = regexp.MustCompile(`(?m)^QUIET +:= ((?:.*\\\n)*.*)$`)
	atOnce        = regexp.MustCompile(`(?m)^\s*(?:defer )?go (?:func|[a-z])|sync\.(?:Mutex|RWMutex|Map|Pool|WaitGroup|Cond)|"sync/atomic"`)
)

// TestQuietPackages: the packages that make test keeps from the race detector start no goroutine
// and share no memory.
func TestQuietPackages(t *testing.T) {
	t.Parallel()
	list := quietPackages.FindStringSubmatch(read(t, "Makefile"))
	if list == nil {
		t.Fatal("the Makefile has no QUIET")
	}
	packages := strings.Fields(strings.ReplaceAll(list[1], "\\\n", " "))
	if len(packages) < 10 {
		t.Errorf("QUIET has %d packages: %q", len(packages), packages)
	}
	for _, folder := range packages {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %d files of Go, %v", folder, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			if found := atOnce.FindString(read(t, file)); found != "" {
				t.Errorf("%s has %q: take %s out of QUIET in the Makefile", file, strings.TrimSpace(found), folder)
			}
		}
	}
}
