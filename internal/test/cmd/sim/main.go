// Command sim runs seeds of the simulation (package sim) and reports what they showed.
// `make sim SEEDS=n` calls it; docs/PROOF.md explains it.
//
//	sim -seeds 10000            as make sim does
//	sim -seed 17 -log           one seed, with its events
//	sim -seeds 1000 -twice      each seed twice: equal seeds make equal runs
//	sim -hunt -seeds 3000       until a seed fails, for make mutants
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim"
)

func main() {
	o := options{out: os.Stdout, progress: os.Stderr}
	flag.Uint64Var(&o.campaign.Seeds, "seeds", 1000, "how many seeds")
	flag.Uint64Var(&o.campaign.First, "first", 1, "the first `seed`")
	flag.Func("seed", "only this `seed`", o.one)
	flag.BoolVar(&o.log, "log", false, "print the events of the seed; needs -seed")
	flag.StringVar(&o.campaign.Only, "only", "", "mode: segment, snowflake, order, period or sequence; any or nothing: segment, snowflake or both, as the seeds say")
	flag.BoolVar(&o.campaign.Twice, "twice", false, "run each seed twice and compare the hashes")
	flag.BoolVar(&o.campaign.KeepGoing, "keep-going", false, "go on after a failure")
	flag.IntVar(&o.campaign.Workers, "workers", 0, "seeds at a time; 0: one per processor")
	flag.DurationVar(&o.timeout, "timeout", 0, "begin no seed after this time; 0: no limit")
	flag.BoolVar(&o.hunt, "hunt", false, "look for a failing seed and check nothing else")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this `file`")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "sim: there are no arguments, only flags")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	debug.SetGCPercent(400) // a run's memory is small and soon dead
	end, err := profileTo(*profile)
	if err == nil {
		err = run(ctx, o)
		end()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be undone
	}
}

type options struct {
	campaign      sim.Campaign
	single        bool
	log, hunt     bool
	timeout       time.Duration
	out, progress io.Writer
}

// one is the flag -seed.
func (o *options) one(seed string) error {
	o.single, o.campaign.Seeds = true, 1
	_, err := fmt.Sscan(seed, &o.campaign.First)
	return err
}

var (
	errUsage  = errors.New("usage")
	errFailed = errors.New("the simulation failed")
	errCut    = errors.New("the simulation was interrupted")
)

func run(ctx context.Context, o options) error {
	switch o.campaign.Only {
	case "any":
		o.campaign.Only = ""
	case "", "segment", "snowflake", "order", "period", "sequence":
	default:
		return fmt.Errorf("%w: -only %q must be segment, snowflake, order, period, sequence or any", errUsage, o.campaign.Only)
	}
	if o.single {
		o.campaign.Seeds = 1
	}
	if o.log {
		if !o.single {
			return fmt.Errorf("%w: -log needs -seed", errUsage)
		}
		return replay(o)
	}
	limited := ctx
	if o.timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	last := time.Now()
	o.campaign.Progress = func(r *sim.Report) {
		if time.Since(last) > 5*time.Second {
			last = time.Now()
			_, _ = fmt.Fprintln(o.progress, r.Line())
		}
	}
	report := sim.RunSeeds(limited, o.campaign)
	interrupted := ctx.Err() != nil && report.Cut()
	for _, f := range report.Failures {
		_, _ = fmt.Fprintf(o.out, "FAIL seed %d after %d seeds, %.1f s: %v\nto see it: %s\n\n", f.Seed, report.Seeds, report.Took.Seconds(), f.Err, command(f.Seed, o.campaign.Only))
	}
	if o.hunt {
		switch {
		case len(report.Failures) > 0:
			return errFailed
		case interrupted:
			return errCut
		}
		_, _ = fmt.Fprintf(o.out, "no seed of %d failed in %.1f s\n", report.Seeds, report.Took.Seconds())
		return nil
	}
	report.Print(o.out)
	if err := report.Check(); err != nil {
		_, _ = fmt.Fprintf(o.out, "\nFAILED\n")
		if len(report.Failures) == 0 {
			_, _ = fmt.Fprintln(o.out, err)
		}
		return errFailed
	}
	switch {
	case interrupted:
		_, _ = fmt.Fprintf(o.out, "\nCUT SHORT: %d of %d seeds ran, and every invariant held in those\n", report.Seeds, report.Of)
		return errCut
	case report.Cut():
		_, _ = fmt.Fprintf(o.out, "\nevery invariant held in the %d of %d seeds that began within %v\n", report.Seeds, report.Of, o.timeout)
	default:
		_, _ = fmt.Fprintf(o.out, "\nevery invariant held\n")
	}
	return nil
}

// command returns the command line that shows a seed.
func command(seed uint64, only string) string {
	args := []string{"go run ./internal/test/cmd/sim"}
	if only != "" {
		args = append(args, "-only", only)
	}
	return strings.Join(append(args, "-seed", fmt.Sprint(seed), "-log"), " ")
}

// replay prints the events of one seed.
func replay(o options) error {
	out := bufio.NewWriterSize(o.out, 1<<16)
	defer func() { _ = out.Flush() }()
	r := sim.Run(o.campaign.First, sim.Options{Log: out, Only: o.campaign.Only})
	_, _ = fmt.Fprintf(out, "seed %d: hash %016x, %d nodes, %d IDs, %v\n", r.Seed, r.Hash, r.Nodes, r.IDs, r.Took.Round(time.Millisecond))
	if r.Err != nil {
		_, _ = fmt.Fprintf(out, "FAIL %v\n", r.Err)
		return errFailed
	}
	return nil
}

// profileTo writes a profile until the returned function is called.
func profileTo(path string) (end func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "sim: profile:", err)
		}
	}, nil
}
