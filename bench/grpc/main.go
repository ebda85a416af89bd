// Command grpc measures what a request for IDs costs over gRPC. It starts two servers
// on loopback, each in a process of its own:
//
//	leaf  internal/server/grpcd with the segment engine on driver/memory
//	bare  grpc-go as it comes, the same protocol, an atomic add as the handler
//
// and drives them from this process, in turn, in short slices and many rounds, so that
// whatever else the machine does hits both alike. The ratios are taken within a round;
// their median is the result. There are three ways to ask, each for 1 ID and for 100:
//
//	unary      64 callers of Next
//	ping-pong  64 streams, one request in flight on each
//	in-flight  4 streams, 64 requests in flight on each
//
//	go run ./bench/grpc
//	go run ./bench/grpc -rounds 9 -slice 5s -conns 1
//
// The result goes to standard output and to bench/results/grpc.txt.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/bench/report"
)

type options struct {
	rounds int
	slice  time.Duration
	conns  int
	out    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/grpc:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) == 2 && args[0] == "serve" {
		return serve(args[1], stdout, os.Stdin)
	}
	opt, err := parse(args)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	began := report.Load()
	samples, err := measure(ctx, self, opt)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n%d connections from the same machine, %d rounds of %v\nload before and after: %s | %s\n",
		report.Head(ctx, "bench/grpc"), opt.conns, opt.rounds, opt.slice, began, report.Load())
	tabulate(&text, samples)
	return report.Publish(stdout, opt.out, text.String())
}

func parse(args []string) (options, error) {
	opt := options{out: report.File("grpc")}
	flags := flag.NewFlagSet("bench/grpc", flag.ContinueOnError)
	flags.IntVar(&opt.rounds, "rounds", 5, "how often each server has its turn")
	flags.DurationVar(&opt.slice, "slice", 2*time.Second, "length of a turn")
	flags.IntVar(&opt.conns, "conns", 2, "connections, which the callers and streams share")
	flags.StringVar(&opt.out, "o", opt.out, "result file")
	if err := flags.Parse(args); err != nil {
		return opt, err
	}
	if opt.rounds < 1 || opt.conns < 1 || opt.slice < 10*time.Millisecond || flags.NArg() > 0 {
		return opt, fmt.Errorf("-rounds %d and -conns %d must be 1 or more, -slice %v 10ms or more, and nothing may follow (%q)",
			opt.rounds, opt.conns, opt.slice, flags.Args())
	}
	return opt, nil
}
