package limit

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
)

// Config tunes a Gate. The zero value asks for no token and has the defaults.
type Config struct {
	// Tokens are those of which every client must show one, also one with a certificate.
	// nil: none is asked for.
	Tokens *auth.Tokens

	// TargetWait is how long the requests that have to wait may wait on average before
	// newer ones are rejected. It should be a fraction of the time that callers have.
	// 0: 250 ms.
	TargetWait time.Duration

	// MaxWaiting bounds the number of requests that may wait at once, per mode, and so
	// memory, with about 10 KB for each. 0: 10,000.
	MaxWaiting int

	// Databases is how many databases segment mode has, and DatabaseOf says which one has a
	// tag, with a negative number for a tag in several. The requests for the tags of each have
	// slots of their own. 0, or 1: one, and DatabaseOf is not called.
	Databases  int
	DatabaseOf func(tag string) int

	// Runtime is the clock. nil: leaf.SystemRuntime.
	Runtime leaf.Runtime
}

func (c Config) withDefaults() (Config, error) {
	if c.TargetWait == 0 {
		c.TargetWait = 250 * time.Millisecond
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = 10_000
	}
	if c.Runtime == nil {
		c.Runtime = leaf.SystemRuntime()
	}
	if c.Tokens == nil {
		c.Tokens = auth.NewTokens()
	}
	switch {
	case c.TargetWait < 0:
		return c, leaf.BadField("target wait", c.TargetWait, "must be above 0")
	case c.MaxWaiting < 0:
		return c, leaf.BadField("max waiting", c.MaxWaiting, "must be 1 or more")
	}
	return c, nil
}

// Gate is a leaf.Access that lets through what the rules allow. Make it with New; it has
// nothing to close. All methods are safe for concurrent use.
type Gate struct {
	tokens  *auth.Tokens
	rt      leaf.Runtime
	table   atomic.Pointer[table]
	waiting [modes]lines
	inner   [modes]leaf.Issuer
	unnamed *client // without a name; shared

	sequences leaf.Sequencer
	ofMany    lines // those of sequences, whose rows any database may have

	refused refusals
	set     sync.Mutex // held by Set
}

// Modes, as indexes.
const (
	segment = iota
	snowflake
	modes
)

var _ leaf.Access = (*Gate)(nil)

// New returns a Gate without rules in front of issuers, none of which may be nil.
func New(issuers leaf.Issuers, c Config) (*Gate, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if issuers.Segment == nil || issuers.Snowflake == nil {
		return nil, fmt.Errorf("%w: a mode that is off is leaf.Disabled, not nil", leaf.ErrBadRequest)
	}
	g := &Gate{tokens: c.Tokens, rt: c.Runtime, inner: [modes]leaf.Issuer{issuers.Segment, issuers.Snowflake}, sequences: issuers.Sequencer()}
	n, of := c.Databases+1, c.DatabaseOf // one more for what any of them may serve
	if c.Databases <= 1 {
		n, of = 1, nil
	}
	g.waiting[segment], g.waiting[snowflake] = newLines(c, true, n, of), newLines(c, false, 1, nil)
	g.ofMany = g.waiting[segment].last()
	g.table.Store(&table{})
	g.unnamed = g.client("")
	return g, nil
}

// SetWaiting replaces Config.TargetWait and Config.MaxWaiting, which must be above 0. Requests
// that wait go on to wait.
func (g *Gate) SetWaiting(target time.Duration, most int) {
	for i := range g.waiting {
		g.waiting[i].set(target, most)
	}
}

// Open implements leaf.Access. A name that [ValidateClient] refuses is refused here too,
// for all protocols.
func (g *Gate) Open(c leaf.Credentials) (*leaf.Issuers, error) {
	grant, err := g.tokens.Identify(c)
	if err != nil {
		if !errors.Is(err, leaf.ErrNotReady) {
			g.refused.unauthenticated.Add(1)
		}
		return nil, err
	}
	switch {
	case !grant.Free(): // limits know it by the name that it has proved
		return grant.Issuers(func() *leaf.Issuers { return granted(grant, &g.client(grant.Name).issuers) }), nil
	case c.Certificate != "":
		return &g.client(c.Certificate).issuers, nil
	case c.Name != "":
		if err := ValidateClient(c.Name); err != nil {
			return nil, err // no limit can be set for it
		}
		return &g.client(c.Name).issuers, nil
	}
	return &g.unnamed.issuers, nil
}

// Guarded implements leaf.Access.
func (g *Gate) Guarded() bool { return g.tokens.Required() }

// Set puts rules into force for all that follows, in place of those before. Numbers
// outside their limits are brought within them.
func (g *Gate) Set(r Rules) {
	g.set.Lock()
	defer g.set.Unlock()
	g.table.Store(g.table.Load().next(r, g.rt.Now()))
}
