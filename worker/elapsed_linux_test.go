package worker_test

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/worker"
)

// TestElapsedIsTheMachines: a program that says nothing else goes by the time since the machine started,
// which counts suspensions. TestClaimAcrossASuspension shows what that is good for.
func TestElapsedIsTheMachines(t *testing.T) {
	elapsed := worker.Config{}.WithDefaults().Elapsed
	if elapsed == nil {
		t.Fatal("by default the monotonic clock counts, which stands still while the machine is suspended")
	}
	content, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	first, _, _ := strings.Cut(string(content), " ")
	uptime, err := strconv.ParseFloat(first, 64)
	if err != nil {
		t.Fatal(err)
	}
	if got := elapsed().Seconds(); math.Abs(got-uptime) > 60 { // a busy machine
		t.Errorf("%.1f s have passed, the machine has run for %.1f s", got, uptime)
	}
}
