package app_test

import (
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/uptime"
)

// TestElapsedIsTheMachines: the engine goes by the time since the machine started, which counts suspensions
// (package worker has the test of what that is good for).
func TestElapsedIsTheMachines(t *testing.T) {
	t.Parallel()
	a, stop := start(t, embedded(shortDir(t)))
	defer stop()
	if got, up := a.Elapsed(), uptime.Now(); (up - got).Abs() > time.Minute { // a busy machine
		t.Errorf("%v have passed, the machine has run for %v", got, up)
	}
}
