package leaf

import "slices"

// The names of the modes, in paths, queries and gRPC health checks.
const (
	SegmentMode   = "segment"
	SnowflakeMode = "snowflake"
)

// Readiness is what a node tells load balancers: whether each mode serves. One mode may
// serve for minutes while the other cannot, so a node serves if one of its modes does.
type Readiness struct {
	Segment, Snowflake ModeReadiness

	Reasons []string // about the node as a whole: alarms, or why no mode serves
	Cluster string   // the cluster's ID, "" if it is not known
}

// ModeReadiness is the part of one mode. The zero value is a mode that is not enabled.
type ModeReadiness struct {
	Enabled bool
	Ready   bool     // it issues IDs; false unless Enabled
	Reasons []string // why not, or what needs attention
}

// Of returns whether a mode serves, for "" whether any does, and what there is to say
// about it. The error is ErrBadRequest for another name.
func (r Readiness) Of(mode string) (ready bool, reasons []string, err error) {
	switch mode {
	case "":
		return r.Segment.Ready || r.Snowflake.Ready, slices.Concat(r.Segment.Reasons, r.Snowflake.Reasons, r.Reasons), nil
	case SegmentMode:
		return r.Segment.Ready, r.Segment.about(mode, r.Reasons), nil
	case SnowflakeMode:
		return r.Snowflake.Ready, r.Snowflake.about(mode, r.Reasons), nil
	}
	return false, nil, BadField("mode", mode, "must be "+SegmentMode+" or "+SnowflakeMode)
}

func (m ModeReadiness) about(mode string, node []string) []string {
	if !m.Enabled && len(m.Reasons) == 0 {
		return slices.Concat([]string{mode + " mode is not enabled"}, node)
	}
	return slices.Concat(m.Reasons, node)
}

// Without returns r for a node of which no mode serves, and why.
func (r Readiness) Without(reason string) Readiness {
	r.Segment.Ready, r.Snowflake.Ready = false, false
	r.Reasons = slices.Concat([]string{reason}, r.Reasons)
	return r
}
