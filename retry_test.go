package leaf_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		is    error
		err   error
		after time.Duration
		text  string
	}{
		{"with its hint", leaf.ErrThrottled, leaf.Throttled("rate of tag \"order\"", 1500*time.Millisecond), 1500 * time.Millisecond, `leaf: throttled: rate of tag "order", retry after 1.5s`},
		{"never at once", leaf.ErrThrottled, leaf.Throttled("quota", 0), time.Millisecond, "leaf: throttled: quota, retry after 1ms"},
		{"wrapped", leaf.ErrThrottled, fmt.Errorf("node a: %w", leaf.Throttled("quota", time.Second)), time.Second, "node a: leaf: throttled: quota, retry after 1s"},
		{"of a node that cannot serve", leaf.ErrExhausted, leaf.Later(leaf.ErrExhausted, "too many wait", time.Second), time.Second, "leaf: exhausted, retry: too many wait, retry after 1s"},
		{"without a hint", leaf.ErrThrottled, leaf.ErrThrottled, 0, "leaf: throttled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := leaf.RetryAfter(tt.err); got != tt.after || tt.err.Error() != tt.text || !errors.Is(tt.err, tt.is) {
				t.Errorf("after %v, %q; want %v, %q", got, tt.err, tt.after, tt.text)
			}
		})
	}
	if got := leaf.RetryAfter(leaf.ErrNotReady); got != 0 {
		t.Errorf("RetryAfter of another error = %v", got)
	}
}

// TestAnyone: the Access without limits gives everybody the same, and a mode that is off
// says so.
func TestAnyone(t *testing.T) {
	t.Parallel()
	for _, c := range []leaf.Credentials{{}, {Token: "x", Name: "y", Certificate: "z"}} {
		i, err := leaf.Anyone(nil, nil).Open(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []leaf.Issuer{i.Segment, i.Snowflake} {
			if _, err := mode.Next(t.Context(), "a"); !errors.Is(err, leaf.ErrDisabled) {
				t.Errorf("a mode that is off: %v", err)
			}
		}
	}
}
