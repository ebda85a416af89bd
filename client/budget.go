package client

import (
	"math"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// budget bounds what the client asks beyond the first request of each batch: hedges and
// retries. When nodes fail, all clients retry at the same time; without a bound they
// would multiply the load of those that are left.
//
// It is a bucket: every first request pours in ratio, every second perSecond, every
// hedge or retry takes one out. A retry that finds it empty waits; a hedge is left out.
//
// Lanes share it fairly: one may take a token only if it leaves as many as it has taken
// lately. So n lanes whose every request fails leave a share of 1/(n+1) to the others.
type budget struct {
	ratio     float64
	perSecond float64

	mu      sync.Mutex
	tokens  float64
	updated time.Time
}

// maxTokens is how much the bucket holds: enough for a node to die under a thousand
// requests in flight.
const maxTokens = 1000

// share is what one lane has taken of a budget lately. The budget's mutex guards it.
type share struct {
	taken   float64 // falls by the factor e in lately
	updated time.Time
}

// lately is how long a share remembers.
const lately = 10 * time.Second

func newBudget(rt leaf.Runtime, ratio float64, perSecond int) *budget {
	return &budget{ratio: ratio, perSecond: float64(perSecond), tokens: min(float64(perSecond), maxTokens), updated: rt.Now()}
}

// earn is called for every first request.
func (b *budget) earn() {
	b.mu.Lock()
	b.tokens = min(b.tokens+b.ratio, maxTokens)
	b.mu.Unlock()
}

// spend takes one token if there is one for the lane of this share.
func (b *budget) spend(now time.Time, of *share) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refillLocked(now)
	if passed := now.Sub(of.updated); passed > 0 {
		of.taken *= math.Exp(-passed.Seconds() / lately.Seconds())
		of.updated = now
	}
	if b.tokens < 1+of.taken {
		return false
	}
	b.tokens--
	of.taken++
	return true
}

// left returns how many hedges and retries could be asked now.
func (b *budget) left(now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refillLocked(now)
	return b.tokens
}

func (b *budget) refillLocked(now time.Time) {
	if passed := now.Sub(b.updated); passed > 0 {
		b.tokens = min(b.tokens+passed.Seconds()*b.perSecond, maxTokens)
		b.updated = now
	}
}
