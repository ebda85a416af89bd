package cli_test

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/leaf-idgen/leaf/internal/cli"
)

var update = flag.Bool("update", false, "write the golden files and the wanted parts of the scripts")

// noExitSleep is for GORACE: under the race detector every process would sleep for
// a second before it ends.
const noExitSleep = "atexit_sleep_ms=0"

// TestMain makes the test binary a leaf program as well: a script or a test that
// runs "leaf" starts a process of its own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"leaf": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop)
		os.Exit(cli.Run(ctx, cli.Process{Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr}))
	}})
}
