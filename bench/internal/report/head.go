package report

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Head names the program, the time, the commit, the version of Go and the machine, in
// one line.
func Head(ctx context.Context, program string) string {
	cpu := "unknown CPU"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.SplitSeq(string(data), "\n") {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s %s, commit %s, %s %s/%s, %d x %s", program, time.Now().Format("2006-01-02 15:04"),
		FirstLine(ctx, "git", "describe", "--always", "--dirty", "--exclude=*"),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpu)
}

// FirstLine returns what a command prints first, such as its version, or "unknown".
func FirstLine(ctx context.Context, name string, arg ...string) string {
	out, err := exec.CommandContext(ctx, name, arg...).Output()
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

// Load returns the load averages of the machine.
func Load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(data))
}

// File returns where a program keeps its last result by default.
func File(program string) string {
	return filepath.Join("bench", "results", program+".txt")
}

// Publish writes text to w and to a file, whose folder it makes.
func Publish(w io.Writer, file, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
