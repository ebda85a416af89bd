// Command leaf runs a node of the ID service, and manages it. See leaf --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the time zones of periods, also where the machine has none

	"github.com/leaf-idgen/leaf/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	os.Exit(cli.Run(ctx, cli.Process{Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr}))
}
