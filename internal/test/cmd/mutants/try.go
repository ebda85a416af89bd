package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// bench is where mutants are tried.
type bench struct {
	root    string
	hunt    time.Duration // of one mutant by the simulation; 0: none
	simOnly bool
	dir     string // for the unbroken simulation, "" if no mutant asks for it

	mu    sync.Mutex
	sound map[string]func() error // by package and expression: runs its tests unbroken, once
}

// outcome is what a test or the simulation made of a mutant.
type outcome struct {
	tried  bool
	caught string        // the test or the seed that failed; "" if none did
	took   time.Duration // without compiling
}

// verdict is what became of one mutant.
type verdict struct {
	mutant
	test, sim outcome
	compiling time.Duration
	err       error
}

func (v verdict) caught() bool { return v.test.caught != "" || v.sim.caught != "" }

// prepare compiles the simulation as it is: a seed that fails with a mutant must pass
// without it.
func (b *bench) prepare(ctx context.Context, all []mutant) error {
	if b.hunt <= 0 || !slices.ContainsFunc(all, func(m mutant) bool { return m.sim.mode != "" }) {
		return nil
	}
	var err error
	if b.dir, err = os.MkdirTemp("", "mutants"); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.unbroken(), "./internal/test/cmd/sim").CombinedOutput(); err != nil {
		return fmt.Errorf("the simulation does not compile: %w\n%s", err, out)
	}
	return nil
}

func (b *bench) unbroken() string { return filepath.Join(b.dir, "sim") }

func (b *bench) remove() {
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}

// try runs one mutant's test and simulation. The code is compiled first, so that a
// mutant that does not compile is not taken for one that was caught.
func (b *bench) try(ctx context.Context, m mutant) (v verdict) {
	v.mutant = m
	var dir string
	if dir, v.err = os.MkdirTemp("", "mutant"); v.err != nil {
		return v
	}
	defer os.RemoveAll(dir)
	all := ctx
	var overlay string
	if overlay, v.err = m.overlay(b.root, dir); v.err != nil {
		return v
	}
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	if m.run != "" && !b.simOnly {
		v.err = b.runTest(ctx, &v, dir, overlay)
	}
	if v.test.caught != "" {
		v.err = b.passes(all, m.pkg, m.run)
	}
	if m.sim.mode != "" && b.dir != "" && v.err == nil {
		v.err = b.simulate(ctx, &v, dir, overlay)
	}
	return v
}

// runTest runs the named test.
func (b *bench) runTest(ctx context.Context, v *verdict, dir, overlay string) error {
	binary := filepath.Join(dir, "test")
	if err := v.compile(ctx, "test", "-c", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, v.pkg); err != nil {
		return err
	}
	began := time.Now()
	out, err := b.start(ctx, binary, v.pkg, v.run)
	v.test.tried, v.test.took = true, time.Since(began)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && !strings.Contains(out, "--- PASS"):
		return fmt.Errorf("%s: no test ran that matches %q: skipped, or renamed", v.name, v.run)
	case err != nil:
		v.test.caught = failed(out)
	}
	return nil
}

// start runs tests of a package from its compiled test binary. It runs in the package's folder,
// where rapid would keep what failed, for later runs without the mutant to begin with.
func (b *bench) start(ctx context.Context, binary, pkg, run string) (output string, err error) {
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^("+run+")$", "-test.timeout", "3m", "-test.v", "-test.failfast")
	cmd.Dir, cmd.Env = filepath.Join(b.root, pkg), append(os.Environ(), "RAPID_NOFAILFILE=true")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// passes fails if tests that failed with a mutant fail without one, too: a server is
// missing, or the machine too busy for them. That would be no catch.
func (b *bench) passes(ctx context.Context, pkg, run string) error {
	key := pkg + " " + run
	b.mu.Lock()
	if b.sound == nil {
		b.sound = map[string]func() error{}
	}
	if b.sound[key] == nil {
		b.sound[key] = sync.OnceValue(func() error { return b.runUnbroken(ctx, pkg, run) })
	}
	check := b.sound[key]
	b.mu.Unlock()
	return check()
}

func (b *bench) runUnbroken(ctx context.Context, pkg, run string) error {
	dir, err := os.MkdirTemp("", "unbroken")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-ldflags=-s -w", "-o", binary, pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("the tests of %s do not compile: %w\n%s", pkg, err, out)
	}
	if out, err := b.start(ctx, binary, pkg, run); err != nil {
		return fmt.Errorf("%s %s fails without a mutant, too: %s", pkg, run, failed(out))
	}
	return nil
}

// simulate runs seeds until one fails that passes without the mutant.
func (b *bench) simulate(ctx context.Context, v *verdict, dir, overlay string) error {
	binary := filepath.Join(dir, "sim")
	if err := v.compile(ctx, "build", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./internal/test/cmd/sim"); err != nil {
		return err
	}
	began := time.Now()
	defer func() { v.sim.tried, v.sim.took = true, time.Since(began) }()
	h := v.mutant.sim
	for first := uint64(1); first <= uint64(h.seeds); {
		left := b.hunt - time.Since(began)
		if left <= 0 {
			return nil
		}
		seed, err := hunting(ctx, binary, h.mode, first, uint64(h.seeds)+1-first, left)
		if err != nil || seed == 0 {
			return err
		}
		sound, err := hunting(ctx, b.unbroken(), h.mode, seed, 1, 0)
		if err != nil {
			return err
		}
		if sound == 0 {
			v.sim.caught = strconv.FormatUint(seed, 10)
			return nil
		}
		first = seed + 1 // what make sim would find without any mutant
	}
	return nil
}

// hunting runs seeds and returns the first one that fails, 0 if none does within the
// limit.
func hunting(ctx context.Context, binary, mode string, first, seeds uint64, limit time.Duration) (uint64, error) {
	cmd := exec.CommandContext(ctx, binary, "-hunt", "-workers", "1", "-only", mode, "-timeout", limit.String(),
		"-first", strconv.FormatUint(first, 10), "-seeds", strconv.FormatUint(seeds, 10))
	out, err := cmd.Output()
	if err == nil || ctx.Err() != nil {
		return 0, ctx.Err()
	}
	seed, found := caughtBy(string(out))
	if !found {
		return 0, fmt.Errorf("the simulation ended without a failing seed: %w\n%s", err, out)
	}
	return strconv.ParseUint(seed, 10, 64)
}

// caughtBy returns the seed of the line that the simulation prints of a failure.
func caughtBy(output string) (seed string, ok bool) {
	for line := range strings.Lines(output) {
		if rest, found := strings.CutPrefix(line, "FAIL seed "); found {
			seed, _, ok = strings.Cut(rest, " ")
			return seed, ok
		}
	}
	return "", false
}

func (v *verdict) compile(ctx context.Context, args ...string) error {
	began := time.Now()
	defer func() { v.compiling += time.Since(began) }()
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s does not compile: %w\n%s", v.name, err, out)
	}
	return nil
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
	if v.err != nil {
		return fmt.Sprintf("ERROR     %-46s %v", v.name, v.err)
	}
	var by []string
	if v.test.tried {
		by = append(by, fmt.Sprintf("%5.1f s  %s", v.test.took.Seconds(), orElse(v.test.caught, v.run+" passes")))
	}
	if v.sim.tried {
		by = append(by, fmt.Sprintf("%5.1f s  %s", v.sim.took.Seconds(), v.sim.seed()))
	}
	if v.caught() {
		return fmt.Sprintf("caught    %-46s %s", v.name, strings.Join(by, "; "))
	}
	return fmt.Sprintf("SURVIVED  %-46s %s, although: %s", v.name, strings.Join(by, "; "), v.breaks)
}

func (o outcome) seed() string {
	if o.caught == "" {
		return "no seed fails"
	}
	return "seed " + o.caught
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
