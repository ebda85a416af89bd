package chaos

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Document is the reports of one or more runs, with what they ran on.
type Document struct {
	Made    time.Time
	Command string // that makes it again, nearly
	Commit  string
	Machine string
	Reports []*Report
	Unrun   []string // topologies that could not be run, with the reason
}

// NewDocument returns a document without reports that describes this machine and
// the source in the working directory.
func NewDocument(ctx context.Context, command string) *Document {
	d := &Document{Made: time.Now(), Command: command, Machine: machine()}
	if out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%H").Output(); err == nil {
		d.Commit = strings.TrimSpace(string(out))
		if out, err := exec.CommandContext(ctx, "git", "status", "--short", "--untracked-files=no").Output(); err == nil && len(out) > 0 {
			d.Commit += ", with changes"
		}
	}
	return d
}

// machine describes what the runs ran on.
func machine() string {
	text := fmt.Sprintf("%s, %s/%s, %d processors", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return text
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return text + ", " + strings.TrimSpace(value)
		}
	}
	return text
}

// Failed reports whether any run broke a promise.
func (d *Document) Failed() bool {
	for _, r := range d.Reports {
		if r.Failed() {
			return true
		}
	}
	return false
}
