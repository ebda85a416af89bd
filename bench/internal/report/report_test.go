package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/bench/internal/report"
)

func self(v float64) float64 { return v }

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"one", []float64{3}, 3},
		{"odd", []float64{9, 1, 4}, 4},
		{"even: the mean of the middle ones", []float64{9, 1, 4, 6}, 5},
	} {
		if got := report.Median(tt.values, self); got != tt.want {
			t.Errorf("%s: Median(%v) = %v, want %v", tt.name, tt.values, got, tt.want)
		}
	}
}

// TestRatioIsTakenWithinARound: the round in which the machine was a hundred times as
// fast counts as much as the others.
func TestRatioIsTakenWithinARound(t *testing.T) {
	t.Parallel()
	if got := report.Ratio([]float64{10, 30, 2000}, []float64{20, 30, 1000}, self); got != 1 {
		t.Errorf("Ratio() = %v, want 1", got)
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	all := []int{1, 2, 3, 4}
	if got := report.Pick(all, func(n int) bool { return n%2 == 0 }); len(got) != 2 || got[0] != 2 || got[1] != 4 || all[0] != 1 {
		t.Errorf("Pick() = %v of %v", got, all)
	}
}

func TestHeadAndPublish(t *testing.T) {
	t.Parallel()
	head := report.Head(t.Context(), "bench/x")
	if !strings.HasPrefix(head, "bench/x 2") || !strings.Contains(head, ", commit ") || !strings.Contains(head, runtime.Version()) {
		t.Errorf("Head() = %q", head)
	}
	var terminal bytes.Buffer
	file := filepath.Join(t.TempDir(), "new", "result.txt")
	if err := report.Publish(&terminal, file, head); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != head || terminal.String() != head {
		t.Errorf("in the file %q, %v; on the terminal %q", got, err, terminal.String())
	}
}
