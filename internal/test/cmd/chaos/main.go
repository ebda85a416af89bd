package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/chaos"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the command line.
type options struct {
	minutes    float64
	outage     float64
	seed       uint64
	topologies []string
	only       []string
	out, keep  string
}

// read reads the command line; an error was reported already.
func read(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Float64Var(&o.minutes, "minutes", 10, "time for all topologies together, divided evenly; at least 15 s each")
	flags.Float64Var(&o.outage, "outage", 0, "minutes for the topology outage beside the others, 0 for its part of -minutes; 11 show a database that is gone for ten")
	flags.Uint64Var(&o.seed, "seed", 0, "determines the faults; 0 takes a new one")
	topology := flags.String("topology", "", "only these, separated by commas, of "+strings.Join(chaos.Topologies(), ", "))
	faults := flags.String("faults", "", "only faults whose name contains one of these, separated by commas")
	flags.StringVar(&o.out, "out", "bin/reports", "folder for the report, chaos.txt")
	flags.StringVar(&o.keep, "keep", "", "folder for the logs of runs that fail (default: the temporary folder)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "chaos: %q is no flag\n", flags.Arg(0))
		return o, flag.ErrHelp
	}
	o.topologies = chaos.Topologies()
	if *topology != "" {
		o.topologies = strings.Split(*topology, ",")
	}
	if *faults != "" {
		o.only = strings.Split(*faults, ",")
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000) + 1
	}
	return o, nil
}

// outage is the topology that may have a time of its own.
const outage = "outage"

// duration returns how long a topology runs.
func (o options) duration(topology string) time.Duration {
	parts := len(o.topologies)
	if o.outage > 0 {
		if topology == outage {
			return time.Duration(o.outage * float64(time.Minute))
		}
		if slices.Contains(o.topologies, outage) {
			parts--
		}
	}
	return time.Duration(o.minutes * float64(time.Minute) / float64(parts))
}

// command returns what to type for the same run.
func (o options) command() string {
	text := fmt.Sprintf("make chaos MINUTES=%g SEED=%d", o.minutes, o.seed)
	if o.outage > 0 {
		text += fmt.Sprintf(" OUTAGE=%g", o.outage)
	}
	if len(o.topologies) < len(chaos.Topologies()) {
		text += " TOPOLOGY=" + strings.Join(o.topologies, ",")
	}
	if len(o.only) > 0 {
		text += fmt.Sprintf(" FAULTS=%q", strings.Join(o.only, ","))
	}
	return text
}

// run runs the topologies, writes the reports, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := read(args, stderr)
	if err != nil {
		return 2
	}
	say := func(text string) { fmt.Fprintln(stderr, text) }
	folder, err := server.NewFolder("", "chaos-build")
	if err != nil {
		say("chaos: " + err.Error())
		return 1
	}
	defer func() { _ = folder.Remove() }()
	say("chaos: building the program with a clock that moves")
	binary, err := chaos.Build(ctx, folder.Path())
	if err != nil {
		say("chaos: " + err.Error())
		return 1
	}
	d, impossible := chaos.NewDocument(ctx, o.command()), false
	for _, name := range o.topologies {
		each := o.duration(name)
		say(fmt.Sprintf("chaos: %s for %v, seed %d", name, each.Round(time.Second), o.seed))
		report, err := chaos.Run(ctx, chaos.Config{
			Topology: name, Seed: o.seed, Duration: each, Only: o.only, Binary: binary, Keep: o.keep, Progress: say,
		})
		if err != nil {
			say("chaos: " + err.Error())
			impossible = true
			reason, _, _ := strings.Cut(err.Error(), "\n")
			d.Unrun = append(d.Unrun, reason)
			if ctx.Err() != nil {
				break
			}
			continue // the others can show something all the same
		}
		d.Reports = append(d.Reports, report)
	}
	if err := write(o.out, d); err != nil {
		say("chaos: " + err.Error())
		return 1
	}
	if err := d.WriteText(stdout); err != nil || d.Failed() || impossible {
		return 1
	}
	return 0
}

// write puts the report into a folder.
func write(folder string, d *chaos.Document) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(folder, "chaos.txt"))
	if err != nil {
		return err
	}
	return errors.Join(d.WriteText(f), f.Close())
}
