package clock_test

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/clock"
)

// near is how far two readings may lie apart that were taken one after the
// other, in two processes on a busy machine.
const near = 10 * time.Second

// TestMovesARunningProgram builds a program once, with the overlay, and runs it
// by several clocks.
func TestMovesARunningProgram(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: compiles the standard library")
	}
	program := build(t, t.TempDir())

	t.Run("there and back", func(t *testing.T) {
		t.Parallel()
		c := open(t, filepath.Join(t.TempDir(), "clock"))
		p := run(t, program, c.Env())
		before := p.tell(t)
		wallIs(t, before, 0)
		for _, offset := range []time.Duration{
			-time.Hour, time.Hour, -time.Nanosecond, 365 * 24 * time.Hour, -10 * 365 * 24 * time.Hour, 0,
			999_999_999, -999_999_999,
		} {
			c.Set(offset)
			now := p.tell(t)
			wallIs(t, now, offset)
			if got := now.library.Sub(now.wall).Abs(); got > near {
				t.Errorf("offset %v: a library's clock differs by %v", offset, got)
			}
			if passed := now.monotonic - before.monotonic; passed < 0 || passed > near {
				t.Errorf("offset %v: the monotonic time has moved by %v", offset, passed)
			}
			if moved := now.sinceStart - now.monotonic; (moved - offset).Abs() > 5*time.Millisecond {
				t.Errorf("offset %v: the wall clock has moved by %v", offset, moved)
			}
			before = now
		}
	})
	t.Run("timers go on", func(t *testing.T) {
		t.Parallel()
		c := open(t, filepath.Join(t.TempDir(), "clock"))
		p := run(t, program, c.Env())
		for _, offset := range []time.Duration{-time.Hour, time.Hour} {
			c.Set(offset)
			from := p.tell(t)
			var to reading
			for to = p.tell(t); to.before < from.after+5; to = p.tell(t) {
				if to.monotonic > from.monotonic+near {
					t.Fatalf("offset %v: %d ticks of 10 ms in %v", offset, to.before-from.after, to.monotonic-from.monotonic)
				}
			}
			// One tick lies at the beginning of the span, one in the ticker's channel, and one is received and not
			// counted yet. The program may stand still at any place: so these are ticks that it counted in between.
			if most := int64((to.monotonic-from.monotonic)/(10*time.Millisecond)) + 3; to.before-from.after > most {
				t.Errorf("offset %v: %d ticks, want at most %d", offset, to.before-from.after, most)
			}
		}
	})
	t.Run("a restart keeps the offset", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "clock")
		c := open(t, path)
		c.Set(-time.Minute)
		wallIs(t, run(t, program, c.Env()).tell(t), -time.Minute)
		again := open(t, path)
		again.Add(-time.Minute)
		if got := again.Offset(); got != -2*time.Minute {
			t.Errorf("Offset() = %v, want -2m", got)
		}
		wallIs(t, run(t, program, again.Env()).tell(t), -2*time.Minute)
	})
	t.Run("two nodes", func(t *testing.T) {
		t.Parallel()
		a, b := open(t, filepath.Join(t.TempDir(), "a")), open(t, filepath.Join(t.TempDir(), "b"))
		pa, pb := run(t, program, a.Env()), run(t, program, b.Env())
		a.Set(time.Hour)
		wallIs(t, pa.tell(t), time.Hour)
		wallIs(t, pb.tell(t), 0)
	})
	t.Run("without the variable", func(t *testing.T) {
		t.Parallel()
		wallIs(t, run(t, program).tell(t), 0)
	})
	t.Run("a missing file", func(t *testing.T) {
		t.Parallel()
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), "LEAF_TEST_CLOCK=/no/such/file")
		output, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(output), "LEAF_TEST_CLOCK=/no/such/file") {
			t.Errorf("error %v, output %q; want a panic that names the file", err, output)
		}
	})
}

func TestFile(t *testing.T) {
	t.Parallel()
	c := open(t, filepath.Join(t.TempDir(), "clock"))
	for _, want := range []time.Duration{0, time.Hour, -time.Hour, math.MaxInt64, math.MinInt64} {
		c.Set(want)
		if got := c.Offset(); got != want {
			t.Errorf("Offset() = %v, want %v", got, want)
		}
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	c.Set(time.Hour)
	c.Add(time.Hour)
	if got := c.Offset(); got != 0 {
		t.Errorf("Offset() after Close = %v, want 0", got)
	}
	if _, err := clock.Open(filepath.Join(t.TempDir(), "no", "folder")); err == nil {
		t.Error("Open in a folder that is not there succeeded")
	}
}

func wallIs(t *testing.T, r reading, offset time.Duration) {
	t.Helper()
	if got := time.Until(r.wall) - offset; got.Abs() > near {
		t.Errorf("the wall clock is off by %v, want %v", got+offset, offset)
	}
}

// build compiles the program tell with an overlay of its own.
func build(t *testing.T, dir string) (program string) {
	t.Helper()
	overlay, err := clock.Overlay(dir)
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "tell")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay="+overlay, "-o", program, "./testdata/tell")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return program
}

func open(t *testing.T, path string) *clock.File {
	t.Helper()
	c, err := clock.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// reading is what the program tells.
type reading struct {
	wall, library         time.Time
	monotonic, sinceStart time.Duration
	before, after         int64 // ticks
}

// running is one run of the program.
type running struct {
	in  io.Writer
	out *bufio.Scanner
}

func run(t *testing.T, program string, env ...string) *running {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // it ends at the end of its input
	})
	return &running{in, bufio.NewScanner(out)}
}

func (r *running) tell(t *testing.T) reading {
	t.Helper()
	if _, err := io.WriteString(r.in, "\n"); err != nil {
		t.Fatal(err)
	}
	if !r.out.Scan() {
		t.Fatalf("the program has ended: %v", r.out.Err())
	}
	var wall, monotonic, sinceStart, library, before, after int64
	if _, err := fmt.Sscan(r.out.Text(), &wall, &monotonic, &sinceStart, &library, &before, &after); err != nil {
		t.Fatalf("%q: %v", r.out.Text(), err)
	}
	return reading{time.Unix(0, wall), time.Unix(0, library), time.Duration(monotonic), time.Duration(sinceStart), before, after}
}

// TestUnknownRelease: an overlay of a time.Now that has changed would not move
// the clock, or move the wrong one.
func TestUnknownRelease(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "src", "time"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "src", "time", "time.go"), []byte("package time\n\nfunc Now() Time { return Time{} }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOROOT", root)
	if _, err := clock.Overlay(t.TempDir()); err == nil || !strings.Contains(err.Error(), "time.Now does not begin as in Go 1.26") {
		t.Errorf("Overlay of an unknown time.Now: %v", err)
	}
}
