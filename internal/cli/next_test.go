package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// pieces notes each Write.
type pieces []string

func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, string(b))
	return len(b), nil
}

// TestNextWritesWholeLines: a program behind the pipe of a command that is killed gets no part of an ID, as xargs would take
// for another ID: a pipe takes a write of up to 512 bytes as a whole or not at all (POSIX).
func TestNextWritesWholeLines(t *testing.T) {
	t.Parallel()
	var out pieces
	var errs bytes.Buffer
	dir := dataDir(t)
	code := cli.Run(t.Context(), cli.Process{
		Args:   []string{"next", "leaf-segment-test", "-n", "1500", "--data-dir", dir},
		Stdout: &out, Stderr: &errs, Environ: []string{"HOME=" + dir, patient},
	})
	if lines := strings.Count(strings.Join(out, ""), "\n"); code != 0 || lines != 1500 {
		t.Fatalf("exit code %d, %d lines, %s", code, lines, errs.String())
	}
	for _, piece := range out {
		if len(piece) > 512 || !strings.HasSuffix(piece, "\n") {
			t.Fatalf("%d bytes at once, with the end %q", len(piece), piece[max(0, len(piece)-20):])
		}
	}
}
