package auth

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// Named is the set of named tokens in force. Make it with NewNamed. All methods are safe for
// concurrent use.
type Named struct {
	table atomic.Pointer[table] // nil: not known yet
	read  atomic.Int64          // when the set was read last, in ns since 1970; 0: never
	begun atomic.Int64          // how many readings have begun

	set  sync.Mutex // held by put
	last int64      // number of the reading that is in force; guarded by set

	once  sync.Once // sets calls
	calls bounded.Guard
}

// table finds a grant by the first bytes of its digest, and is never changed. The time of a search may
// show which first bytes of digests exist. That says nothing about a secret.
type table struct {
	grants map[uint64][]*Grant
	names  map[string]*Grant // also of tokens that are gone, which are revoked
}

// maxNames bounds how many tokens are remembered with those that are gone.
const maxNames = 2 * MaxTokens

// NewNamed returns a set that is not known yet.
func NewNamed() *Named { return &Named{} }

// Set puts tokens into force, in place of those before. Other roles of a token take effect at once, also
// on connections that are open. A token that has another secret or is gone is revoked there, until it comes back.
func (n *Named) Set(tokens []Token, now time.Time) { n.put(tokens, n.begun.Add(1), now) }

// put is Set for a reading of the store. It does nothing if a later reading is in force already. Readings
// have numbers and not times: after a clock was set back, all readings would look older than the last one.
func (n *Named) put(tokens []Token, reading int64, now time.Time) {
	n.set.Lock()
	defer n.set.Unlock()
	if reading < n.last {
		return
	}
	n.last = reading
	before := n.table.Load()
	if before == nil {
		before = &table{}
	}
	next := &table{map[uint64][]*Grant{}, map[string]*Grant{}}
	for _, t := range tokens {
		d, err := digestOf(t.Digest)
		if err != nil || t.Validate() != nil {
			continue // another program wrote it: it opens nothing
		}
		g := before.names[t.Name]
		if g == nil || g.digest != d {
			g = newGrant(t.Name, "token "+t.Name, t.Roles)
			g.digest = d
		} else {
			g.renew(t.Roles)
		}
		next.names[t.Name] = g
		next.grants[g.key()] = append(next.grants[g.key()], g)
	}
	// A token that is gone may come back, when its file or table was restored: connections keep its grant.
	for name, g := range before.names {
		if next.names[name] == g {
			continue
		}
		g.revoked.Store(true)
		if next.names[name] == nil && len(next.names) < maxNames {
			next.names[name] = g
		}
	}
	n.table.Store(next)
	n.read.Store(now.UnixNano())
}

func (d digest) key() uint64 { return binary.BigEndian.Uint64(d[:]) }
func (g *Grant) key() uint64 { return g.digest.key() }

// ReadAt returns when the set was read last; ok is false if it never was.
func (n *Named) ReadAt() (at time.Time, ok bool) {
	ns := n.read.Load()
	return time.Unix(0, ns), ns != 0
}

// find returns the grant of a secret, nil if there is none. Error: leaf.ErrNotReady while the
// set is not known.
func (n *Named) find(d digest) (*Grant, error) {
	t := n.table.Load()
	if t == nil {
		return nil, fmt.Errorf("%w: the named tokens could not be read yet", leaf.ErrNotReady)
	}
	for _, g := range t.grants[d.key()] {
		if subtle.ConstantTimeCompare(d[:], g.digest[:]) == 1 {
			return g, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// FollowConfig is what Follow needs. All fields are required.
type FollowConfig struct {
	Store    Store
	Interval time.Duration // how often the store is read, less a random part of up to half of it
	Timeout  time.Duration // of one reading
	Runtime  leaf.Runtime
	Logger   *slog.Logger
}

// maxHanging is how many readings may hang beyond their deadline before no other one begins: a file can be on a disk that does
// not answer.
const maxHanging = 2

// firstInterval is the interval, at most, until the first reading has succeeded.
const firstInterval = 250 * time.Millisecond

// Follow keeps the set as the store has it until ctx ends. While the store does not answer, the
// last set stays in force; the log says once when that begins and once when it ends.
func (n *Named) Follow(ctx context.Context, c FollowConfig) {
	failed := false
	for ctx.Err() == nil {
		err := n.Refresh(ctx, c)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failed:
			if at, ok := n.ReadAt(); ok {
				c.Logger.Warn("named tokens cannot be read; the last ones stay in force", "read", at.UTC().Format(time.RFC3339), "error", err)
			} else {
				c.Logger.Warn("named tokens cannot be read yet; requests with a named token are refused", "error", err)
			}
		case err == nil && failed:
			c.Logger.Info("named tokens can be read again")
		}
		failed = err != nil
		interval := c.Interval
		if _, ok := n.ReadAt(); !ok {
			interval = min(interval, firstInterval)
		}
		_ = c.Runtime.Wait(ctx, nil, c.Runtime.Jitter(interval))
	}
}

// Refresh reads the store once. A reading that hangs is given up soon after its deadline, and brings nothing.
func (n *Named) Refresh(ctx context.Context, c FollowConfig) error {
	n.once.Do(func() {
		n.calls = bounded.Guard{Runtime: c.Runtime, What: "the store of named tokens", Limit: maxHanging}
	})
	reading, began := n.begun.Add(1), c.Runtime.Now()
	tokens, err := bounded.Do(ctx, &n.calls, c.Timeout, c.Store.NamedTokens)
	if err != nil {
		return fmt.Errorf("read named tokens: %w", err)
	}
	n.put(tokens, reading, began)
	return nil
}
