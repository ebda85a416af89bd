// Command resp measures the Redis protocol against a real Redis: redis-benchmark with
// 50 connections sends INCR, with 1, 16 and 64 commands in flight on each, in turn to
//
//	leaf    internal/server/respd with the segment engine on driver/memory
//	redis   redis-server without persistence
//
// each in a process of its own, in short slices and many rounds, so that whatever else
// the machine does hits both alike. The ratios are taken within a round; their median
// is the result.
//
//	go run ./bench/resp
//	go run ./bench/resp -rounds 9 -slice 5s -pipelines 1,8,64
//
// The result goes to standard output and to bench/results/resp.txt.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/bench/report"
)

// targets are the requests per second of leaf against redis, at least, by the number
// of commands in flight.
var targets = map[int]float64{1: 0.75, 16: 0.7, 64: 1.0}

type options struct {
	rounds    int
	slice     time.Duration
	conns     int
	pipelines []int
	out       string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/resp:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) == 1 && args[0] == "serve" {
		return serve(stdout, os.Stdin)
	}
	opt, err := parse(args)
	if err != nil {
		return err
	}
	for program, debian := range map[string]string{"redis-benchmark": "redis-tools", "redis-server": "redis-server"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w (the Debian package is %s)", err, debian)
		}
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
	fmt.Fprintf(&text, "%s\n%s\nredis-benchmark with %d connections on the same machine, INCR, %d rounds of about %v\nload before and after: %s | %s\n",
		report.Head(ctx, "bench/resp"), report.FirstLine(ctx, "redis-server", "--version"), opt.conns, opt.rounds, opt.slice, began, report.Load())
	tabulate(&text, samples, opt)
	return report.Publish(stdout, opt.out, text.String())
}

func parse(args []string) (options, error) {
	opt := options{out: report.File("resp")}
	pipelines := "1,16,64"
	flags := flag.NewFlagSet("bench/resp", flag.ContinueOnError)
	flags.IntVar(&opt.rounds, "rounds", 7, "how often each server has its turn")
	flags.DurationVar(&opt.slice, "slice", 3*time.Second, "approximate length of a turn")
	flags.IntVar(&opt.conns, "conns", 50, "connections")
	flags.StringVar(&pipelines, "pipelines", pipelines, "numbers of commands in flight on a connection, each measured by itself")
	flags.StringVar(&opt.out, "o", opt.out, "result file")
	if err := flags.Parse(args); err != nil {
		return opt, err
	}
	for text := range strings.SplitSeq(pipelines, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return opt, fmt.Errorf("-pipelines %q: each must be a number of 1 or more", pipelines)
		}
		opt.pipelines = append(opt.pipelines, n)
	}
	if opt.rounds < 1 || opt.conns < 1 || opt.slice < 100*time.Millisecond || flags.NArg() > 0 {
		return opt, fmt.Errorf("-rounds %d and -conns %d must be 1 or more, -slice %v 100ms or more, and nothing may follow (%q)",
			opt.rounds, opt.conns, opt.slice, flags.Args())
	}
	return opt, nil
}
