package limit_test

import (
	"context"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
)

// deriving makes a context from that of its request without waiting, as a call does that is taken to another node. It is
// the timer that ends the context, a moment after the request.
type deriving struct {
	leaf.Issuer

	timer func()
}

func (d *deriving) Next(ctx context.Context, _ string) (int64, error) {
	_, d.timer = context.WithTimeout(ctx, time.Hour)
	return 1, nil
}

// TestContextOutlivesItsRequest: the memory of a request whose context another goroutine may still look at is not used
// for other requests.
func TestContextOutlivesItsRequest(t *testing.T) {
	inner := &deriving{}
	issuers := open(t, newGate(t, limit.Config{}, inner, leaf.Disabled("snowflake")), leaf.Credentials{})
	if _, err := issuers.Segment.Next(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
	inner.timer() // looks at the context of the request
}
