// Command mutants proves that the tests and the simulation can fail: it breaks the
// code on purpose, one defect at a time, and runs the test that must notice it, the
// simulation, or both. See internal/test/mutants/README.md.
//
// It prints a line per mutant and ends with 1 if one survives, does not compile or
// does not apply. With -table it writes the results as tables.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	o := options{}
	flag.StringVar(&o.table, "table", "", "write Markdown tables of the results to this `file`")
	flag.StringVar(&o.only, "run", "", "only mutants whose name, file or class contains this `text`")
	flag.IntVar(&o.parallel, "p", 2, "mutants at a time")
	flag.DurationVar(&o.hunt, "hunt", 20*time.Second, "longest simulation of a mutant; 0: none")
	flag.BoolVar(&o.simOnly, "sim", false, "run the simulation only, of mutants that name it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be undone
	}
}

type options struct {
	table, only string
	parallel    int
	hunt        time.Duration
	simOnly     bool
}

func run(ctx context.Context, report io.Writer, o options) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := load(filepath.Join(root, "internal/test/mutants"), o)
	if err != nil {
		return err
	}
	began := time.Now()
	b := &bench{root: root, hunt: o.hunt, simOnly: o.simOnly}
	defer b.remove()
	if err := b.prepare(ctx, all); err != nil {
		return err
	}
	verdicts := make([]verdict, len(all))
	places := make(chan struct{}, max(1, o.parallel))
	var wait sync.WaitGroup
	for i, m := range all {
		wait.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			verdicts[i] = b.try(ctx, m)
			fmt.Fprintln(report, verdicts[i])
		})
	}
	wait.Wait()
	took := time.Since(began)
	if o.table != "" {
		if err := os.WriteFile(o.table, []byte(markdown(verdicts, took)), 0o600); err != nil {
			return err
		}
	}
	return summarize(report, verdicts, took)
}

// summarize says where the time went, and fails if a mutant was not caught.
func summarize(report io.Writer, verdicts []verdict, took time.Duration) error {
	bad := 0
	var tests, hunts, compiling time.Duration
	for _, v := range verdicts {
		if v.err != nil || !v.caught() {
			bad++
		}
		tests, hunts, compiling = tests+v.test.took, hunts+v.sim.took, compiling+v.compiling
	}
	fmt.Fprintf(report, "mutants: %d in %.0f s; in all %.0f s of compiling, %.0f s of tests, %.0f s of simulation\n",
		len(verdicts), took.Seconds(), compiling.Seconds(), tests.Seconds(), hunts.Seconds())
	if hunted, found := hunted(verdicts); hunted > 0 {
		fmt.Fprintf(report, "mutants: the simulation was tried on %d and caught %d\n", hunted, found)
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d mutants were not caught", bad, len(verdicts))
	}
	fmt.Fprintf(report, "mutants: all %d were caught\n", len(verdicts))
	return nil
}

func hunted(verdicts []verdict) (tried, found int) {
	for _, v := range verdicts {
		if v.sim.tried {
			tried++
		}
		if v.sim.caught != "" {
			found++
		}
	}
	return tried, found
}

// load reads the mutants that o selects, by name.
func load(folder string, o options) ([]mutant, error) {
	found, err := readArchives(folder)
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, m := range found {
		where := strings.Join(append([]string{m.name, m.file}, m.classes...), "\n")
		if strings.Contains(where, o.only) && (!o.simOnly || m.sim.mode != "") {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no mutant in %s has a name, file or class with %q", folder, o.only)
	}
	return all, nil
}
