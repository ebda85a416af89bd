package leaf_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/leaf-idgen/leaf"
)

// TestReadiness: a node serves if one of its modes does, and each mode answers for itself.
func TestReadiness(t *testing.T) {
	t.Parallel()
	serving, waiting := leaf.ModeReadiness{Enabled: true, Ready: true}, leaf.ModeReadiness{Enabled: true, Reasons: []string{"waits"}}
	for _, tt := range []struct {
		name    string
		r       leaf.Readiness
		mode    string
		ready   bool
		reasons []string
	}{
		{"both", leaf.Readiness{Segment: serving, Snowflake: serving}, "", true, nil},
		{"one of two", leaf.Readiness{Segment: serving, Snowflake: waiting}, "", true, []string{"waits"}},
		{"the other", leaf.Readiness{Segment: waiting, Snowflake: serving}, "", true, []string{"waits"}},
		{"none", leaf.Readiness{Segment: waiting, Snowflake: waiting}, "", false, []string{"waits", "waits"}},
		{"the mode that serves", leaf.Readiness{Segment: serving, Snowflake: waiting, Reasons: []string{"alarm"}}, "segment", true, []string{"alarm"}},
		{"the mode that waits", leaf.Readiness{Segment: serving, Snowflake: waiting, Reasons: []string{"alarm"}}, "snowflake", false, []string{"waits", "alarm"}},
		{"not enabled", leaf.Readiness{Segment: serving}, "snowflake", false, []string{"snowflake mode is not enabled"}},
		{"not enabled, nobody asks", leaf.Readiness{Segment: serving}, "", true, nil},
		{"being stopped", leaf.Readiness{Segment: serving, Snowflake: waiting}.Without("stops"), "", false, []string{"waits", "stops"}},
		{"being stopped, by mode", leaf.Readiness{Segment: serving}.Without("stops"), "segment", false, []string{"stops"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ready, reasons, err := tt.r.Of(tt.mode)
			if ready != tt.ready || !slices.Equal(reasons, tt.reasons) || err != nil {
				t.Errorf("%v %q, %v; want %v %q", ready, reasons, err, tt.ready, tt.reasons)
			}
		})
	}
	if _, _, err := (leaf.Readiness{}).Of("Segment"); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("an unknown mode: %v", err)
	}
}
