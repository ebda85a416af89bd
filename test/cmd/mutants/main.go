// Command mutants proves that the tests can fail: it breaks the code on purpose, one
// defect at a time, and runs the test that must notice it. See test/mutants/README.md.
//
// It prints a line per mutant and ends with 1 if one survives, does not compile or
// does not apply. With -table it writes the table for docs/MUTANTS.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	table := flag.String("table", "", "write a Markdown table of the results to this `file`")
	only := flag.String("run", "", "only mutants whose name contains this `text`")
	parallel := flag.Int("p", 2, "mutants at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *table, *only, *parallel); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be undone
	}
}

// verdict is what became of one mutant.
type verdict struct {
	mutant
	took   time.Duration
	caught string // the test that failed; "" if none did
	err    error
}

func run(ctx context.Context, report io.Writer, table, only string, parallel int) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := load(filepath.Join(root, "test/mutants"), only)
	if err != nil {
		return err
	}
	verdicts := make([]verdict, len(all))
	places := make(chan struct{}, max(1, parallel))
	var wait sync.WaitGroup
	for i, m := range all {
		wait.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			verdicts[i] = try(ctx, root, m)
			fmt.Fprintln(report, verdicts[i])
		})
	}
	wait.Wait()
	bad := 0
	for _, v := range verdicts {
		if v.err != nil || v.caught == "" {
			bad++
		}
	}
	if table != "" {
		if err := os.WriteFile(table, []byte(markdown(verdicts)), 0o600); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d mutants were not caught", bad, len(verdicts))
	}
	fmt.Fprintf(report, "mutants: all %d were caught\n", len(verdicts))
	return nil
}

// load reads the mutants, by name.
func load(folder, only string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.mutant"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		m, err := parse(f, string(content))
		if err != nil {
			return nil, err
		}
		if strings.Contains(m.name, only) {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no mutant in %s has a name with %q", folder, only)
	}
	return all, nil
}

// try runs one mutant's test. The code is compiled first, so that a mutant that does
// not compile is not taken for one that was caught.
func try(ctx context.Context, root string, m mutant) (v verdict) {
	v.mutant = m
	began := time.Now()
	defer func() { v.took = time.Since(began) }()
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		v.err = err
		return v
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(root, dir)
	if err != nil {
		v.err = err
		return v
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	binary := filepath.Join(dir, "test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-o", binary, m.pkg).CombinedOutput(); err != nil {
		v.err = fmt.Errorf("%s does not compile: %w\n%s", m.name, err, out)
		return v
	}
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^("+m.run+")$", "-test.timeout", "3m", "-test.v", "-test.failfast")
	cmd.Dir = filepath.Join(root, m.pkg)
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		v.err = ctx.Err()
	case err == nil && !strings.Contains(string(out), "--- PASS"):
		v.err = fmt.Errorf("%s: no test ran that matches %q: skipped, or renamed", m.name, m.run)
	case err != nil:
		v.caught = failed(string(out))
	}
	return v
}

// failed returns the name of the first test that failed, or how the process ended.
func failed(output string) string {
	for line := range strings.Lines(output) {
		if _, rest, ok := strings.Cut(line, "--- FAIL: "); ok {
			name, _, _ := strings.Cut(rest, " ")
			return name
		}
	}
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return strings.TrimSpace(line)
		}
	}
	return "the process failed"
}

// String is the line for people.
func (v verdict) String() string {
	switch {
	case v.err != nil:
		return fmt.Sprintf("ERROR     %-46s %v", v.name, v.err)
	case v.caught == "":
		return fmt.Sprintf("SURVIVED  %-46s %s passes although: %s", v.name, v.run, v.breaks)
	}
	return fmt.Sprintf("caught    %-46s %6.1f s  %s", v.name, v.took.Seconds(), v.caught)
}

func markdown(all []verdict) string {
	var b strings.Builder
	b.WriteString("# Mutants\n\nWritten by `make mutants`: each defect was put into the code, and the named test failed. How it works: test/mutants/README.md.\n\n")
	b.WriteString("| defect | breaks | caught by | seconds, with compiling |\n| --- | --- | --- | --- |\n")
	for _, v := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %.0f |\n", v.name, v.breaks, v.caught, v.took.Seconds())
	}
	return b.String()
}
