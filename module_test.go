package leaf_test

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/zip"
)

// tracked is a file of the module's archive.
type tracked string

func (f tracked) Path() string                 { return string(f) }
func (f tracked) Lstat() (os.FileInfo, error)  { return os.Lstat(string(f)) }
func (f tracked) Open() (io.ReadCloser, error) { return os.Open(string(f)) }

// TestModuleCanBeDownloaded checks the files as the module proxy does before it makes the archive for go
// get. A tracked file with a name that the archive may not hold fails for every user. What a
// run leaves behind (reports, dated results, inputs of fuzzers) is no source.
func TestModuleCanBeDownloaded(t *testing.T) {
	t.Parallel()
	names, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("this is no git checkout: %v", err)
	}
	var files []zip.File
	odd := regexp.MustCompile(`[^A-Za-z0-9._/-]|\d{4}-?\d{2}-?\d{2}|\.(fail|orig|rej|log|out|html)$|(^|/)testdata/(fuzz|rapid)/`)
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		if _, err := os.Lstat(name); err == nil { // else deleted and not committed yet
			files = append(files, tracked(name))
			if m := odd.FindString(name); m != "" {
				t.Errorf("%q is a stray file: no name here has %q", name, m)
			}
		}
	}
	if len(files) < 500 {
		t.Fatalf("only %d tracked files were found", len(files))
	}
	if _, err := zip.CheckFiles(files); err != nil {
		t.Error(err)
	}
}
