// Command compare measures what a request for IDs costs, by protocol, beside what the
// same request costs elsewhere. All servers run on loopback, each in a process of its own:
//
//	http  leaf       internal/server/httpd with the segment engine on driver/memory
//	      bare-fast  the fast path of internal/server/httpd with an atomic add as its handler
//	      bare-net   net/http's ServeMux with the same handler
//	      leaf-net   leaf again, with a field that takes its requests to net/http
//	resp  leaf       internal/server/respd with the same engine
//	      redis      redis-server without persistence
//	grpc  leaf       internal/server/grpcd with the same engine
//	      bare       grpc-go as it comes, the same protocol, an atomic add as the handler
//
// wrk asks the first ones, redis-benchmark the second ones, and this process the last
// ones. The servers of a protocol have their turns one after the other, in short slices and
// many rounds, so that whatever else the machine does hits all of them alike. The ratios
// are taken within a round; their median is the result.
//
//	go run ./bench/compare
//	go run ./bench/compare -only http,resp -rounds 9 -slice 5s -peer fasthttp=/tmp/fasthttp
//
// -peer adds a server of HTTP that is not part of this module: a command that prints its
// host:port as its first line, serves GET /api/segment/get/bench, and ends when its
// standard input does.
//
// The result goes to standard output and to bench/results/compare.txt.
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
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/bench/internal/report"
	"github.com/leaf-idgen/leaf/bench/internal/side"
)

type options struct {
	only   []string
	rounds int
	slice  time.Duration
	peers  []server
	out    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) == 3 && args[0] == "serve" {
		return serve(args[1], args[2], stdout, os.Stdin)
	}
	opt, err := parse(args)
	if err != nil {
		return err
	}
	var chosen []protocol
	for _, p := range protocols(opt) {
		if !slices.Contains(opt.only, p.name) {
			continue
		}
		for program, debian := range p.needs {
			if _, err := exec.LookPath(program); err != nil {
				return fmt.Errorf("%w (the Debian package is %s)", err, debian)
			}
		}
		chosen = append(chosen, p)
	}
	began := report.Load()
	var tables, raw strings.Builder
	for _, p := range chosen {
		samples, err := measure(ctx, p, opt)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		tabulate(&tables, p, samples)
		list(&raw, samples)
	}
	text := fmt.Sprintf("%s\n%d rounds of %v on the same machine\nload before and after: %s | %s\n%s\nraw\n%s",
		report.Head(ctx, "bench/compare"), opt.rounds, opt.slice, began, report.Load(), tables.String(), raw.String())
	return report.Publish(stdout, opt.out, text)
}

func parse(args []string) (options, error) {
	opt := options{out: report.File("compare")}
	var known []string
	for _, p := range protocols(opt) {
		known = append(known, p.name)
	}
	all := strings.Join(known, ",")
	flags := flag.NewFlagSet("bench/compare", flag.ContinueOnError)
	only := flags.String("only", all, "protocols")
	flags.IntVar(&opt.rounds, "rounds", 5, "how often each server has its turn")
	flags.DurationVar(&opt.slice, "slice", 2*time.Second, "length of a turn, whole seconds")
	flags.StringVar(&opt.out, "o", opt.out, "result file")
	flags.Func("peer", "name=command, another server of HTTP; may be repeated", func(s string) error {
		name, command, ok := strings.Cut(s, "=")
		if !ok || name == "" || strings.TrimSpace(command) == "" {
			return errors.New("must be name=command")
		}
		opt.peers = append(opt.peers, server{name: name, start: func(ctx context.Context) (*side.Process, error) {
			return side.Start(ctx, name, strings.Fields(command)...)
		}})
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return opt, err
	}
	opt.only = strings.Split(*only, ",")
	for _, name := range opt.only {
		if !slices.Contains(known, name) {
			return opt, fmt.Errorf("-only %q: each must be one of %s", *only, all)
		}
	}
	if opt.rounds < 1 || opt.slice < time.Second || flags.NArg() > 0 {
		return opt, fmt.Errorf("-rounds %d must be 1 or more, -slice %v 1s or more, and nothing may follow (%q)", opt.rounds, opt.slice, flags.Args())
	}
	return opt, nil
}
