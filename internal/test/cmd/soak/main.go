// Command soak keeps one real node at a share of its capacity for a long time, with both
// modes, on a real MariaDB, and checks that nothing grows: memory, goroutines, file
// descriptors, latency. All IDs are logged and verified at the end.
//
// It measures the capacity first, under the same quota of processor time as the long
// run, and writes a report. It ends with 1 if an ID repeats, a request fails, or
// something grew.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// plan is what the flags ask for.
type plan struct {
	leaf     string        // the program
	length   time.Duration // of the long run
	ids      int64         // that it takes at least
	share    float64       // of the capacity
	quota    float64       // processors that the node may use; 0: all
	report   string        // file; "": standard output only
	singles  int           // clients that take one ID at a time
	interval time.Duration // between two samples
}

func main() {
	var p plan
	flag.StringVar(&p.leaf, "leaf", "bin/leaf", "the program to test")
	flag.DurationVar(&p.length, "duration", time.Hour, "length of the run")
	flag.Int64Var(&p.ids, "ids", 1_000_000_000, "IDs to take at least, most of them in batches of 1000")
	flag.Float64Var(&p.share, "share", 0.8, "share of the measured capacity, for requests of one ID")
	flag.Float64Var(&p.quota, "quota", 0, "processors that the node may use, such as 0.3, on a machine that has other work (cgroup v1 or v2, root); 0: no limit")
	flag.StringVar(&p.report, "report", "", "also write the report to this `file`")
	flag.Parse()
	p.singles, p.interval = 32, 10*time.Second
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, p); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be undone
	}
}

func run(ctx context.Context, p plan) error {
	folder, err := server.NewFolder("", "soak")
	if err != nil {
		return err
	}
	defer func() { _ = folder.Remove() }()
	out := io.Writer(os.Stdout)
	if p.report != "" {
		f, err := os.Create(p.report)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		out = io.MultiWriter(out, f)
	}
	describe(ctx, out, p)

	db, err := server.StartMariaDB(ctx, folder.Path())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	n, err := startNode(ctx, p, filepath.Join(folder.Path(), "node"), db.URL())
	if err != nil {
		return err
	}
	defer n.kill()

	batches := float64(p.ids) / 1000 / p.length.Seconds() * 1.02
	capacity, err := measure(ctx, p, n, batches)
	if err != nil {
		return err
	}
	rate := p.share * capacity
	fmt.Fprintf(out, "capacity: %.0f requests/s of one ID beside %.0f batches/s of 1000 (30 s, %d clients)\n", capacity, batches, p.singles)
	fmt.Fprintf(out, "run:      %.0f requests/s of one ID (%.0f %%) and %.0f batches/s for %v\n\n", rate, 100*p.share, batches, p.length)

	logs := filepath.Join(folder.Path(), "ids")
	s := &samples{node: n, every: p.interval}
	single := load{name: "one", rate: rate, clients: p.singles, count: 1, tags: []string{"orders", "users", "sevens"}, snowflake: true, length: p.length, logs: filepath.Join(logs, "one")}
	batch := load{name: "batch", rate: batches, clients: 4, count: 1000, tags: []string{"bulk"}, length: p.length, logs: filepath.Join(logs, "batch")}
	reports, err := together(ctx, p, n, s, single, batch)
	if err != nil {
		return err
	}
	if err := n.stop(); err != nil {
		return err
	}
	s.print(out)
	for _, r := range reports {
		fmt.Fprintln(out, r)
	}
	missed := missed(p, reports)
	for _, m := range missed {
		fmt.Fprintln(out, "MISSED:", m)
	}
	grew := s.grew()
	for _, g := range grew {
		fmt.Fprintln(out, "GREW:", g)
	}
	if len(grew) == 0 {
		fmt.Fprintln(out, "memory, goroutines, descriptors and latency are flat")
	}
	fmt.Fprintln(out)
	if err := verify(ctx, out, p, logs); err != nil {
		return err
	}
	switch {
	case len(missed) > 0:
		return fmt.Errorf("not the load that was wanted: %v", missed)
	case len(grew) > 0:
		return fmt.Errorf("not flat: %v", grew)
	}
	return nil
}
