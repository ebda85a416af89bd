// Command fuzz runs the fuzz targets of a module one after another, each for a share
// of the time, and says at the end which inputs made one fail.
//
//	fuzz -minutes 10 ./...
//	fuzz -time 30s ./snowflake
//
// A target that fails does not keep the others from running. go test writes the input
// into testdata/fuzz of its package. Once the defect is mended, turn it into a case of
// f.Add with a comment that says what failed. The exit code is 0 if no target failed,
// 1 if one did, and 2 if there is none to run.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	minutes := flag.Float64("minutes", 0, "divide `N` minutes over all targets")
	each := flag.Duration("time", 0, "time of each target, e.g. 30s; overrides -minutes")
	parallel := flag.Int("parallel", 0, "processes of each target; 0: one per CPU")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	r := runner{dir: ".", out: os.Stdout, parallel: *parallel}
	code := r.run(ctx, flag.Args(), time.Duration(*minutes*float64(time.Minute)), *each)
	stop()
	os.Exit(code)
}

// target is one function.
type target struct{ pkg, dir, name string }

type runner struct {
	dir      string // of the module
	out      io.Writer
	parallel int
}

// run runs the targets of the packages. With each 0 they share all.
func (r runner) run(ctx context.Context, packages []string, all, each time.Duration) int {
	targets, err := r.targets(ctx, packages)
	if err != nil || len(targets) == 0 {
		fmt.Fprintf(r.out, "fuzz: no targets: %v\n", err)
		return 2
	}
	if each == 0 {
		each = max(all/time.Duration(len(targets)), time.Second).Round(time.Second)
	}
	begin := time.Now()
	var failed []string
	for i, t := range targets {
		left := time.Duration(len(targets)-i) * each
		fmt.Fprintf(r.out, "== %d of %d: %s %s for %v; about %v left\n", i+1, len(targets), t.pkg, t.name, each, left)
		if input, err := r.fuzz(ctx, t, each); err != nil {
			failed = append(failed, fmt.Sprintf("%s %s: %s", t.pkg, t.name, input))
		}
		if ctx.Err() != nil {
			fmt.Fprintf(r.out, "fuzz: stopped after %d of %d targets\n", i+1, len(targets))
			return 1
		}
	}
	fmt.Fprintf(r.out, "FUZZ: %d targets, %d failed, %v\n", len(targets), len(failed), time.Since(begin).Round(time.Second))
	for _, f := range failed {
		fmt.Fprintf(r.out, "FAILED %s\n", f)
	}
	if len(failed) > 0 {
		return 1
	}
	return 0
}

var declared = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(`)

// targets finds them in the sources, which is much faster than to build and ask every
// test: in the order of packages and files.
func (r runner) targets(ctx context.Context, packages []string) ([]target, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{range .TestGoFiles}}{{.}} {{end}}{{range .XTestGoFiles}}{{.}} {{end}}"}, packages...)...)
	list.Dir = r.dir
	text, err := list.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("go list: %s", bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return nil, err
	}
	var found []target
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for file := range strings.FieldsSeq(fields[2]) {
			source, err := os.ReadFile(filepath.Join(fields[1], file))
			if err != nil {
				return nil, err
			}
			for _, m := range declared.FindAllSubmatch(source, -1) {
				found = append(found, target{pkg: fields[0], dir: fields[1], name: string(m[1])})
			}
		}
	}
	return found, nil
}

var writtenTo = regexp.MustCompile(`Failing input written to (\S+)`)

// fuzz runs one target. If it fails, input says which file to read, or that there is
// none: a case of the target fails, or the test does not build.
func (r runner) fuzz(ctx context.Context, t target, d time.Duration) (input string, err error) {
	// An input is made smaller for 60 s by default, which would be all the time there is.
	args := []string{"test", "-run", "^" + t.name + "$", "-fuzz", "^" + t.name + "$", "-fuzztime", d.String(), "-fuzzminimizetime", "5s", t.pkg}
	if r.parallel > 0 {
		args = append(args, "-parallel", fmt.Sprint(r.parallel))
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // go test then ends its workers
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdout = io.MultiWriter(r.out, &said)
	cmd.Stderr = cmd.Stdout
	if err = cmd.Run(); err == nil {
		return "", nil
	}
	if m := writtenTo.FindSubmatch(said.Bytes()); m != nil {
		file := filepath.Join(t.dir, string(m[1]))
		if rel, err := filepath.Rel(r.dir, file); err == nil && filepath.IsAbs(r.dir) {
			file = rel
		}
		return "see " + file, err
	}
	return "no new input, see above", err
}
