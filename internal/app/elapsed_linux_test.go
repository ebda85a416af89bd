package app_test

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestElapsedIsTheMachines: the engine goes by the time since the machine started,
// which counts suspensions (package worker has the test of what that is good for).
func TestElapsedIsTheMachines(t *testing.T) {
	t.Parallel()
	a, stop := start(t, embedded(shortDir(t)))
	defer stop()
	content, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	first, _, _ := strings.Cut(string(content), " ")
	uptime, err := strconv.ParseFloat(first, 64)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Elapsed().Seconds(); math.Abs(got-uptime) > 60 { // a busy machine
		t.Errorf("%.1f s have passed, the machine has run for %.1f s", got, uptime)
	}
}
