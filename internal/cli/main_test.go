package cli_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/test/long"
)

var update = flag.Bool("update", false, "write the golden files and the wanted parts of the scripts")

// noExitSleep is for GORACE: under the race detector every process would sleep for
// a second before it ends.
const noExitSleep = "atexit_sleep_ms=0"

// TestMain makes the test binary a leaf program as well: a script or a test that
// runs "leaf" starts a process of its own.
func TestMain(m *testing.M) {
	testscript.Main(quick{m}, map[string]func(){"leaf": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop)
		os.Exit(cli.Run(ctx, cli.Process{Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr}))
	}})
}

// quick puts a leaf program without the race detector in front of PATH. These tests
// start a thousand processes, and with the race detector each takes five times longer to
// start. The detector looks at the same commands and nodes where tests run them in their own
// process, here and in package app, and at the processes, too, with LEAF_LONG=1.
type quick struct{ *testing.M }

func (q quick) Run() int {
	if !raced || long.Asked() {
		return q.M.Run()
	}
	dir, err := os.MkdirTemp("", "leaf-program")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// The version of a program that is built from a repository names the commit.
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-w", "-o", filepath.Join(dir, "leaf"), "../../cmd/leaf")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return q.M.Run()
}
