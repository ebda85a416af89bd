package echo_test

import (
	"context"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/echo"
)

// TestWatch: echoes come one after another, each after the time at which it was due.
func TestWatch(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var last time.Time
	seen := 0
	err := echo.Watch(ctx, func(due time.Time) {
		if time.Now().Before(due) || !due.After(last) {
			t.Errorf("an echo due at %v came now, after one due at %v", due, last)
		}
		last = due
		if seen++; seen == 5 {
			stop()
		}
	})
	if err != nil || seen != 5 {
		t.Errorf("Watch = %v after %d echoes, want nil after 5", err, seen)
	}
}
