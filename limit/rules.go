package limit

import "context"

// Rule limits one tag or one client. The zero Rule limits nothing.
type Rule struct {
	Rate    int64 `json:"rate,omitempty"`    // IDs per second and node, up to one second's worth at once; 0: no limit
	Quota   int64 `json:"quota,omitempty"`   // IDs per UTC day and node; 0: no limit
	Blocked bool  `json:"blocked,omitempty"` // nothing is issued
}

// MaxRate is the largest Rate and the largest Quota.
const MaxRate = 1_000_000_000_000

// Rules are all limits that are in force. Clients are named by their certificate, or by
// the name that they gave themselves if they have none; a client without a name is "".
type Rules struct {
	Tags    map[string]Rule
	Clients map[string]Rule
}

// Store keeps rules for all nodes. Drivers implement it beside segment.Catalog. Methods
// are safe for concurrent use and end with ctx; the contract of segment.Store about
// errors holds.
type Store interface {
	// Limits returns the rules that are not zero. A database whose tables have no room
	// for them has none.
	Limits(ctx context.Context) (Rules, error)

	// SetTagLimit replaces the rule of a tag; the zero Rule removes it. The tag's other
	// options stay. Errors: leaf.ErrUnknownTag, leaf.ErrBadRequest, segment.ErrSchema
	// if the tables have no room (`leaf schema apply`).
	SetTagLimit(ctx context.Context, tag string, r Rule) error

	// SetClientLimit is SetTagLimit for a client, which need not be known.
	SetClientLimit(ctx context.Context, client string, r Rule) error
}
