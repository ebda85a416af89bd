// Command http measures what one HTTP request for an ID costs. It starts
// servers on loopback, each in a process of its own:
//
//	leaf       internal/server/httpd with the segment engine on driver/memory
//	bare-fast  the fast path of internal/server/httpd with an atomic add as its handler
//	bare-net   net/http's ServeMux with the same handler
//	leaf-net   leaf again, with a field that takes its requests to net/http
//
// and drives them with wrk, one after the other in short slices and many rounds,
// so that whatever else the machine does hits all of them alike. The ratios are
// taken within a round; their median is the result. -extra adds a server that is
// not part of this module: a command that prints its host:port as its first line,
// serves GET /api/segment/get/bench, and ends when its standard input does.
//
//	go run ./bench/http
//	go run ./bench/http -rounds 9 -slice 5s -conns 16,64,256 -extra fasthttp=/tmp/fasthttp
//
// The result goes to standard output and to bench/results/http.txt.
package main

import (
	"context"
	"errors"
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

// The targets that the measurement is held against.
const (
	overNetHTTP  = 1.4 // leaf against bare-net, at least
	overBareFast = 0.9 // leaf against bare-fast, at least
)

type options struct {
	rounds  int
	slice   time.Duration
	conns   []int
	threads int
	extra   []contender
	out     string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/http:", err)
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
	if _, err := exec.LookPath("wrk"); err != nil {
		return fmt.Errorf("%w (the Debian package is wrk)", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	contenders := []contender{
		{name: "leaf", command: []string{self, "serve", "leaf"}},
		{name: "bare-fast", command: []string{self, "serve", "bare-fast"}},
		{name: "bare-net", command: []string{self, "serve", "bare-net"}},
		{name: "leaf-net", command: []string{self, "serve", "leaf"}, header: "X-Unknown: 1"},
	}
	contenders = append(contenders, opt.extra...)

	began := report.Load()
	samples, err := measure(ctx, contenders, opt)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\nwrk with %d threads on the same machine, %d rounds of %v\nload before and after: %s | %s\n",
		report.Head(ctx, "bench/http"), opt.threads, opt.rounds, opt.slice, began, report.Load())
	tabulate(&text, contenders, samples, opt)
	return report.Publish(stdout, opt.out, text.String())
}

func parse(args []string) (options, error) {
	opt := options{out: report.File("http")}
	conns := "16,64"
	flags := flag.NewFlagSet("bench/http", flag.ContinueOnError)
	flags.IntVar(&opt.rounds, "rounds", 5, "how often each server has its turn")
	flags.DurationVar(&opt.slice, "slice", 3*time.Second, "length of a turn, whole seconds")
	flags.StringVar(&conns, "conns", conns, "numbers of connections, each measured by itself")
	flags.IntVar(&opt.threads, "threads", 1, "threads of wrk")
	flags.StringVar(&opt.out, "o", opt.out, "result file")
	flags.Func("extra", "name=command, another server; may be repeated", func(s string) error {
		name, command, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("must be name=command")
		}
		opt.extra = append(opt.extra, contender{name: name, command: strings.Fields(command)})
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return opt, err
	}
	for text := range strings.SplitSeq(conns, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < opt.threads {
			return opt, fmt.Errorf("-conns %q: each must be a number of at least -threads (%d)", conns, opt.threads)
		}
		opt.conns = append(opt.conns, n)
	}
	if opt.rounds < 1 || opt.slice < time.Second || flags.NArg() > 0 {
		return opt, fmt.Errorf("-rounds %d must be 1 or more, -slice %v 1s or more, and nothing may follow (%q)", opt.rounds, opt.slice, flags.Args())
	}
	return opt, nil
}
