package limit

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
)

// Rule limits one tag or one client. The zero Rule limits nothing.
type Rule struct {
	Rate    int64 `json:"rate,omitempty"`    // IDs per second and node, up to one second's worth at once; 0: no limit
	Quota   int64 `json:"quota,omitempty"`   // IDs per UTC day and node; 0: no limit
	Blocked bool  `json:"blocked,omitempty"` // nothing is issued
}

// Change is an edit of a Rule; nil fields stay as they are.
type Change struct {
	Rate    *int64 `json:"rate,string,omitempty"`
	Quota   *int64 `json:"quota,string,omitempty"`
	Blocked *bool  `json:"blocked,omitempty"`
}

// ChangeTo returns the change that makes any rule r.
func ChangeTo(r Rule) Change { return Change{&r.Rate, &r.Quota, &r.Blocked} }

// ApplyTo returns r with the fields of c that are set.
func (c Change) ApplyTo(r Rule) Rule {
	if c.Rate != nil {
		r.Rate = *c.Rate
	}
	if c.Quota != nil {
		r.Quota = *c.Quota
	}
	if c.Blocked != nil {
		r.Blocked = *c.Blocked
	}
	return r
}

// Validate is Rule.Validate for the fields that are set.
func (c Change) Validate() error { return c.ApplyTo(Rule{}).Validate() }

// MaxRate is the largest Rate and the largest Quota.
const MaxRate = 1_000_000_000_000

// Validate returns leaf.ErrBadRequest, naming field, value and limit, if a number is
// outside its limits. Stores call it before they write.
func (r Rule) Validate() error {
	limit := fmt.Sprintf("must be 1 to %d, or 0 for no limit", int64(MaxRate))
	if r.Rate < 0 || r.Rate > MaxRate {
		return leaf.BadField("rate", r.Rate, limit)
	}
	if r.Quota < 0 || r.Quota > MaxRate {
		return leaf.BadField("quota", r.Quota, limit)
	}
	return nil
}

// sane returns the rule with each number within its limits. A rule can be written to the table
// with SQL, past every check. A negative number limits nothing.
func (r Rule) sane() Rule {
	r.Rate = min(max(r.Rate, 0), MaxRate)
	r.Quota = min(max(r.Quota, 0), MaxRate)
	return r
}

// MaxClientLen is the longest name of a client in characters, the width of its column.
const MaxClientLen = 128

// ValidateClient returns leaf.ErrBadRequest unless name can be that of a client: at most
// MaxClientLen characters of UTF-8 without control characters, and no space at either end,
// which databases do not tell apart. The empty name stands for
// all clients without one.
func ValidateClient(name string) error {
	switch {
	case !utf8.ValidString(name):
		return leaf.BadField("client", name, "must be valid UTF-8")
	case utf8.RuneCountInString(name) > MaxClientLen:
		return leaf.BadField("client", name, fmt.Sprintf("must have at most %d characters", MaxClientLen))
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return leaf.BadField("client", name, "must have no control characters")
	case strings.TrimSpace(name) != name:
		return leaf.BadField("client", name, "must not begin or end with a space")
	}
	return nil
}

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
	// Limits returns the rules that are not zero: none if the tables lack the columns for
	// limits.
	Limits(ctx context.Context) (Rules, error)

	// SetTagLimit changes the rule of a tag in one atomic step, and returns what it is then;
	// one that has become zero is removed. The tag's other options stay. Errors:
	// leaf.ErrUnknownTag, leaf.ErrBadRequest, segment.ErrSchema if the tables lack
	// the columns for limits (`leaf schema apply` adds them).
	SetTagLimit(ctx context.Context, tag string, c Change) (Rule, error)

	// SetClientLimit is SetTagLimit for a client, which need not be known.
	SetClientLimit(ctx context.Context, client string, c Change) (Rule, error)
}
