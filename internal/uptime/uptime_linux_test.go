package uptime_test

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/uptime"
)

// TestNow: the time is that since the machine started, which counts suspensions.
func TestNow(t *testing.T) {
	content, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Skipf("needs /proc: %v", err)
	}
	first, _, _ := strings.Cut(string(content), " ")
	up, err := strconv.ParseFloat(first, 64)
	if err != nil {
		t.Fatal(err)
	}
	if got := uptime.Now().Seconds(); math.Abs(got-up) > 60 { // a busy machine
		t.Errorf("%.1f s have passed, the machine has run for %.1f s", got, up)
	}
}
