package auth

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// How many wrong tokens an address may show: a few at once, then one per second.
const (
	guardBurst  = 10
	guardRefill = time.Second
	maxGuarded  = 4096 // addresses; those beyond share one place
)

// Calm is how long after the last refused attempt a Guard is calm again.
const Calm = time.Minute

// guessable is the length in bytes below which a token may be one that people have chosen.
const guessable = 32

// Guard slows down the guessing of tokens. When an address has sent too many wrong tokens, all its
// tokens are refused for a while, except a valid one that is too long to guess. So a client with a
// wrong token does not lock out its neighbours behind one proxy. All methods are
// safe for concurrent use, and memory is bounded.
type Guard struct {
	now func() time.Time

	mu      sync.Mutex
	empty   map[netip.Prefix]time.Time // when the bucket of an address is full again
	refused int64                      // attempts
	last    netip.Prefix               // that was refused last
	at      time.Time                  // when it was

	some atomic.Bool // empty may have entries
	wake chan struct{}
}

// NewGuard returns a Guard with a clock.
func NewGuard(now func() time.Time) *Guard {
	return &Guard{now: now, empty: map[netip.Prefix]time.Time{}, wake: make(chan struct{}, 1)}
}

// place is what counts as one address: of IPv6 a network of 64 bits, which one machine has.
func place(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// blocked returns after what time an address may try again, 0 if now. A nil Guard blocks no address.
func (g *Guard) blocked(a netip.Addr) time.Duration {
	if g == nil || !g.some.Load() || !a.IsValid() {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wait(g.keyOf(a), g.now())
}

// wait is how long a bucket has no token.
func (g *Guard) wait(p netip.Prefix, now time.Time) time.Duration {
	full, known := g.empty[p]
	if !known || full.Before(now) {
		return 0
	}
	return max(0, full.Sub(now)-(guardBurst-1)*guardRefill)
}

func (g *Guard) keyOf(a netip.Addr) netip.Prefix {
	p := place(a)
	if _, known := g.empty[p]; !known && len(g.empty) >= maxGuarded {
		return netip.Prefix{}
	}
	return p
}

// failed counts a wrong token of an address, and returns how long it is refused now, 0 if not.
func (g *Guard) failed(a netip.Addr) time.Duration {
	if g == nil || !a.IsValid() {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if len(g.empty) >= maxGuarded {
		for p, full := range g.empty {
			if !full.After(now) {
				delete(g.empty, p)
			}
		}
	}
	p := g.keyOf(a)
	if wait := g.wait(p, now); wait > 0 {
		g.last, g.at = place(a), now
		g.refused++
		select {
		case g.wake <- struct{}{}:
		default:
		}
		return wait
	}
	full := g.empty[p]
	if full.Before(now) {
		full = now
	}
	g.empty[p] = full.Add(guardRefill)
	g.some.Store(true)
	return 0
}

// GuardStatus is what a Guard has seen.
type GuardStatus struct {
	Refused int64        // attempts since the start that were refused unheard
	Last    netip.Prefix // whose attempt was refused last
	Active  bool         // within the last minute
}

// Status returns what the Guard has seen.
func (g *Guard) Status() GuardStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	return GuardStatus{g.refused, g.last, !g.at.IsZero() && g.now().Sub(g.at) < Calm}
}

// Woken is signalled when an attempt was refused.
func (g *Guard) Woken() <-chan struct{} { return g.wake }

func tooMany(wait time.Duration) error {
	return leaf.Throttled(fmt.Sprintf("too many wrong tokens came from this address; it may show %d at once and one per second", guardBurst), max(wait.Round(time.Millisecond), time.Millisecond))
}
