// Command overload offers one real node more than it can serve, over HTTP, gRPC and the
// Redis protocol, and says what becomes of those who ask. It has two parts:
//
//	store  Each ID costs a load from a real MariaDB behind a slow line, so the store is
//	       what there is too little of. Requests arrive at random moments at a constant
//	       rate, whatever becomes of those before: half of the capacity that was measured
//	       first, all of it, twice and five times as much.
//	cpu    IDs are in stock, so the processor is what there is too little of. Connections
//	       that each have one request under way: as many as saturate it, and five times
//	       as many.
//
// Each protocol has a node process of its own, `leaf serve` as users get it. A request
// has a deadline; goodput is the IDs that arrived in time. The report says how much of its
// peak the goodput keeps, how long requests took that were not rejected, how many were
// rejected with a hint when to come back, and what the node held in memory. An ID that
// came twice, a goodput below 85 % of the peak (60 % where the load and the node share the
// cores), and a latency or a memory above its bound
// (see bounds.go) make the exit status 1.
//
//	go run ./bench/overload
//	go run ./bench/overload -protocols grpc -parts store -slice 10s
//
// The result goes to standard output and to bench/results/overload.txt.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/leaf-idgen/leaf/bench/internal/report"
)

type options struct {
	protocols []string
	parts     []string
	slice     time.Duration
	warmUp    time.Duration
	deadline  time.Duration
	delay     time.Duration
	settle    time.Duration // between loads
	tags      int
	conns     int
	rounds    int
	program   string
	out       string
}

// The parts, as they are named by -parts and in the report.
const (
	partStore = "store"
	partCPU   = "cpu"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/overload:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, progress io.Writer) error {
	opt, err := parse(args, progress)
	if err != nil {
		return err
	}
	began := report.Load()
	phases, version, err := measure(ctx, opt, progress)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\nMariaDB %s\nthe load comes from the same machine, deadline %v, %v measured after %v\nload before and after: %s | %s\n",
		report.Head(ctx, "bench/overload"), version, opt.deadline, opt.slice, opt.warmUp, began, report.Load())
	broken := tabulate(&text, phases, opt)
	if err := report.Publish(stdout, opt.out, text.String()); err != nil {
		return err
	}
	if broken > 0 {
		return fmt.Errorf("%d bounds do not hold", broken)
	}
	return nil
}

func parse(args []string, usage io.Writer) (options, error) {
	opt := options{out: report.File("overload"), settle: time.Second}
	protocols, parts := strings.Join(names(), ","), partStore+","+partCPU
	flags := flag.NewFlagSet("bench/overload", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.Usage = func() {
		fmt.Fprint(usage, "Offer one real node more than it can serve, and see what becomes of those who ask.\n"+
			"It needs the program mariadbd, and about five minutes.\n\n  go run ./bench/overload [flags]\n\n")
		flags.PrintDefaults()
	}
	flags.StringVar(&protocols, "protocols", protocols, "`names` of the protocols, separated by commas")
	flags.StringVar(&parts, "parts", parts, "`names` of what there is too little of, separated by commas")
	flags.DurationVar(&opt.slice, "slice", 5*time.Second, "measured time of each load")
	flags.DurationVar(&opt.warmUp, "warm-up", 2*time.Second, "time before it, in which the load takes effect")
	flags.DurationVar(&opt.deadline, "deadline", time.Second, "of a request")
	flags.DurationVar(&opt.delay, "delay", 20*time.Millisecond, "store: what the line to MariaDB adds, in each direction; above 50ms the node cannot connect in time")
	flags.IntVar(&opt.tags, "tags", 10_000, "store: tags, asked for in turn; with many, few IDs come from stock")
	flags.IntVar(&opt.conns, "conns", 64, "connections that measure the capacity; cpu: that saturate the node")
	flags.IntVar(&opt.rounds, "rounds", 3, "cpu: how often each load has its turn; the median counts")
	flags.StringVar(&opt.program, "leaf", "", "the `program` to measure; default: built from this source")
	flags.StringVar(&opt.out, "o", opt.out, "result `file`")
	if err := flags.Parse(args); err != nil {
		return opt, err
	}
	var err error
	if opt.protocols, err = choose("protocols", protocols, names()); err != nil {
		return opt, err
	}
	if opt.parts, err = choose("parts", parts, []string{partStore, partCPU}); err != nil {
		return opt, err
	}
	switch {
	case opt.slice < 100*time.Millisecond || opt.warmUp < 0 || opt.deadline < 10*time.Millisecond || opt.delay < 0:
		return opt, fmt.Errorf("-slice %v must be 100ms or more, -deadline %v 10ms or more, -warm-up %v and -delay %v not negative", opt.slice, opt.deadline, opt.warmUp, opt.delay)
	case opt.tags < 1 || opt.conns < 1 || opt.rounds < 1:
		return opt, fmt.Errorf("-tags %d, -conns %d and -rounds %d must be 1 or more", opt.tags, opt.conns, opt.rounds)
	case flags.NArg() > 0:
		return opt, fmt.Errorf("nothing may follow the flags (%q)", flags.Args())
	}
	return opt, nil
}

// choose splits a list of names, each of which must be one of all.
func choose(name, text string, all []string) ([]string, error) {
	chosen := strings.Split(text, ",")
	for _, c := range chosen {
		if !slices.Contains(all, c) {
			return nil, fmt.Errorf("-%s %q: %q must be one of %s", name, text, c, strings.Join(all, ", "))
		}
	}
	return chosen, nil
}
