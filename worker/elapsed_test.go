package worker_test

import (
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/uptime"
	"github.com/leaf-idgen/leaf/worker"
)

// TestElapsedIsTheMachines: a program that says nothing else goes by the time since the machine started,
// which counts suspensions. TestClaimAcrossASuspension shows what that is good for.
func TestElapsedIsTheMachines(t *testing.T) {
	elapsed := worker.Config{}.WithDefaults().Elapsed
	if elapsed == nil {
		t.Fatal("by default the monotonic clock counts, which stands still while the machine is suspended")
	}
	if got, up := elapsed(), uptime.Now(); (up - got).Abs() > time.Minute { // a busy machine
		t.Errorf("%v have passed, the machine has run for %v", got, up)
	}
}
