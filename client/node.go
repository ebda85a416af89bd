package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
)

const (
	// Bounds of the delay of a hedge that follows the latency.
	minPatience       = 10 * time.Millisecond
	maxPatience       = 250 * time.Millisecond
	minPatienceRemote = 100 * time.Millisecond

	// tolerated is how many failures in a row end in ejection, and how many requests in a row without
	// an answer.
	tolerated = 3

	// muteTime is how long a node may leave all requests without an answer, but for those for tags in strict order. It is
	// longer than a node waits before it says that it has no IDs (segment.max-wait, a second by default).
	muteTime = scarcePatience

	// An ejection lasts firstEjection, and twice as long each time it follows on
	// another one, up to longestEjection.
	firstEjection   = 200 * time.Millisecond
	longestEjection = 2 * time.Second

	// warmUp is how long a node that returns takes to get its full share.
	warmUp = 10 * time.Second
)

// State is how a client sees a node.
type State int

// The states of a node.
const (
	StateUnknown  State = iota // it has not answered yet; it is asked
	StateUsable                // it answers
	StateSuspect               // requests wait for it, and nothing has come from it meanwhile
	StateDraining              // it says that it does not serve; asked if there is no other node
	StateEjected               // it failed; asked if there is no other node
)

// String returns the name of s.
func (s State) String() string {
	return [...]string{"unknown", "usable", "suspect", "draining", "ejected"}[s]
}

var errMute = errors.New("requests stay without an answer")

// node is one node of the list: the link to it and what is known of its health.
type node struct {
	key  string // ID and address: a node that moves is another one
	rt   leaf.Runtime
	log  *journal
	link link
	kick chan struct{} // asks watch to look now
	stop context.CancelFunc

	changed func() // is called when the node fails, or works again; it does not block

	info     atomic.Pointer[discovery.Node]
	inFlight atomic.Int64
	requests atomic.Int64
	failures atomic.Int64
	ejected  atomic.Int64
	foreign  atomic.Bool // of another cluster, as far as it says

	mu        sync.Mutex
	state     State
	why       error         // of the last ejection; nil: it has been usable since
	row       int           // failures in a row
	ejections int           // in a row
	due       time.Time     // when watch looks next
	looked    time.Time     // when it looked last
	left      time.Time     // when it was ejected last
	since     time.Time     // when it became suspect
	warm      time.Time     // when it returned; zero: it was there from the start
	heard     time.Time     // last answer
	mute      time.Time     // the oldest request since then that was given up; zero: none
	noticed   time.Time     // when the last of them was given up that counts
	unheard   int           // how many of them were sent one after the other
	stuck     bool          // the connection carries health checks and no requests
	p95       time.Duration // of the latency, about
}

// asked counts a request.
func (n *node) asked() {
	n.inFlight.Add(1)
	n.requests.Add(1)
}

// answered is the end of a request that was sent at started, zero if its latency is not to be measured. An error
// that the node has answered is a matter of the lane: the node works.
func (n *node) answered(now, started time.Time, err error) {
	n.inFlight.Add(-1)
	if errors.Is(err, errGivenUp) || isOwn(err) {
		return // by the client, or by the application
	}
	if errors.Is(err, ErrOtherCluster) {
		n.foreign.Store(true)
		n.changed()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if isBroken(err) {
		n.failures.Add(1)
		n.failedLocked(now, err)
		n.lookLocked()
		return
	}
	n.heard, n.mute = now, time.Time{}
	if n.state == StateSuspect {
		n.state = StateUsable
	}
	n.row = 0
	if err == nil && !started.IsZero() {
		n.measureLocked(now.Sub(started))
	}
}

// measureLocked moves the estimate of the 95th percentile: up by a tenth for a latency
// above it, down by a nineteenth of that for one below, so that it rests where one in
// twenty is above.
func (n *node) measureLocked(latency time.Duration) {
	switch {
	case n.p95 == 0:
		n.p95 = latency
	case latency > n.p95:
		n.p95 += n.p95/10 + 1
	default:
		n.p95 -= n.p95 / 190
	}
	n.p95 = min(max(n.p95, 10*time.Microsecond), time.Minute)
}

// failedLocked counts a failure, and ejects the node for too many in a row.
func (n *node) failedLocked(now time.Time, err error) {
	n.row++
	if n.row >= tolerated && n.state != StateEjected {
		n.ejectLocked(now, err)
	}
}

func (n *node) ejectLocked(now time.Time, err error) {
	if n.state != StateEjected {
		n.ejected.Add(1)
		n.log.add(slog.LevelWarn, "node ejected", "node", n.info.Load().ID, "error", err)
		n.changed()
	}
	n.state, n.why, n.mute, n.left = StateEjected, err, time.Time{}, now
	n.due = now.Add(n.rt.Jitter(min(firstEjection<<min(n.ejections, 10), longestEjection)))
	n.ejections++
}

// failure returns why the node was last ejected; nil: it has been usable since.
func (n *node) failure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.why
}

// works says whether no other node is needed in the place of this one.
func (n *node) works() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state != StateEjected && n.state != StateDraining && !n.foreign.Load()
}

// usable says whether the node answers, as far as is known.
func (n *node) usable() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state == StateUsable
}

// suspect is called when a request that was sent at started has no answer for too long.
// If nothing else has come from the node since, it may be gone: watch asks it.
func (n *node) suspect(now, started time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.heard.After(started) || n.state != StateUsable && n.state != StateUnknown {
		return
	}
	n.state, n.since = StateSuspect, now
	n.lookLocked()
}

// abandoned is called when a flight ends without the answer of this node. A node that
// answers health checks and no requests is found by this. That it did not answer before a
// hedge would have been asked is no evidence: callers may have little time. fixed is as
// for patience.
func (n *node) abandoned(now, started time.Time, fixed time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.heard.After(started) || now.Sub(started) < n.patienceLocked(fixed) {
		return
	}
	switch {
	case n.mute.IsZero():
		n.mute, n.noticed, n.unheard = started, now, 1
	case started.After(n.noticed):
		n.noticed, n.unheard = now, n.unheard+1
	}
	// One that was sent before another was given up proves nothing more: this process may have stood still,
	// and has the answers to both unread.
	if now.Sub(n.mute) > muteTime && n.unheard >= tolerated && n.state != StateEjected {
		n.failures.Add(1)
		n.ejectLocked(now, errMute)
		n.stuck = true
	}
}

// inDoubt reports whether requests stay without an answer. Their streams are not cut off then: a late answer is
// the proof that the node only takes longer than its callers wait.
func (n *node) inDoubt() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.mute.IsZero() && n.state != StateEjected
}

// patience is how long a request may wait before another node is asked too; fixed is
// used if it is not 0.
func (n *node) patience(fixed time.Duration) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.patienceLocked(fixed)
}

func (n *node) patienceLocked(fixed time.Duration) time.Duration {
	if fixed > 0 {
		return fixed
	}
	return min(max(2*n.p95, minPatience), maxPatience)
}

// patienceRemote is the same for a node of another zone.
func (n *node) patienceRemote(fixed time.Duration) time.Duration {
	return max(4*n.patience(fixed), minPatienceRemote)
}
