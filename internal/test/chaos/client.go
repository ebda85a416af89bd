package chaos

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf/idlog"
)

// The outcomes of a request, beside the codes of the program's own errors.
const (
	ok       = "ok"      // answered within the deadline
	late     = "late"    // answered, but after the deadline
	unsent   = "unsent"  // its deadline passed while the client waited for the request before it
	timeout  = "timeout" // not answered within patience
	noListen = "refused" // nothing listens
	cut      = "cut"     // the connection ended before the reply did
)

const (
	// deadline is when a reply counts as too late, from the moment its request was due.
	deadline = time.Second
	// patience is how long a client waits for a reply, from when it was sent.
	patience = 3 * time.Second

	// strictDeadline is deadline for tags in strict order, whose owner may have to be replaced.
	strictDeadline = 5 * time.Second
	// strictPatience is patience for them. It is longer than a node is frozen: the reply of one that
	// goes on is what order must survive.
	strictPatience = 12 * time.Second
)

// stream is what one client asks a node for.
type stream struct {
	name  string // in reports
	space string // the IDs that must be distinct: the tag, or "snowflake"
	path  string // of the request over HTTP
	count int
	rate  float64 // requests per second
	stock bool    // a range lasts for longer than any outage

	strict bool // the tag is in strict order

	protocol string // "" is HTTP
}

// key is the tag, or in snowflake mode the name for the log.
func (s stream) key() string { return path.Base(s.path) }

// snowflake says which mode makes the IDs.
func (s stream) snowflake() bool { return strings.HasPrefix(s.path, "/api/snowflake/") }

// limits returns when a reply counts as too late, and how long a client waits for it.
func (s stream) limits() (late, patient time.Duration) {
	if s.strict {
		return strictDeadline, strictPatience
	}
	return deadline, patience
}

// sample is one request.
type sample struct {
	due     time.Duration // since the run began
	latency time.Duration // from due on
	outcome string
}

// client asks one node for the IDs of one stream, one request after another.
type client struct {
	node   *node
	stream stream
	begin  time.Time // of the run
	source source
	write  func(space string, life int, ids []int64, call idlog.Call) error // into the log

	mu      sync.Mutex
	samples []sample
	fault   error // of the log, or a reply that makes no sense
}

func newClient(n *node, s stream, begin time.Time, write func(string, int, []int64, idlog.Call) error) (*client, error) {
	from, err := sourceOf(n, s)
	if err != nil {
		return nil, err
	}
	return &client{node: n, stream: s, begin: begin, write: write, source: from}, nil
}

// run asks until ctx ends. A request is due at every beat, whatever became of the
// one before; one whose deadline has passed before it could be sent is not sent.
func (c *client) run(ctx context.Context) {
	defer c.source.close()
	beat := time.Duration(float64(time.Second) / c.stream.rate)
	first := time.Since(c.begin)
	deadline, patience := c.stream.limits()
	for i := 0; ; i++ {
		due := first + time.Duration(i)*beat
		if pause(ctx, due-time.Since(c.begin)) != nil {
			return
		}
		outcome := unsent
		if time.Since(c.begin)-due <= deadline {
			outcome = c.ask(context.WithoutCancel(ctx), patience)
		}
		latency := time.Since(c.begin) - due
		if outcome == ok && latency > deadline {
			outcome = late
		}
		c.mu.Lock()
		c.samples = append(c.samples, sample{due, latency, outcome})
		c.mu.Unlock()
	}
}

// ask sends one request and logs what came.
func (c *client) ask(ctx context.Context, patience time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before, sent := c.node.life(), time.Now()
	ids, outcome, err := c.source.fetch(ctx)
	call := callSince(c.begin, sent)
	if err == nil && ids != nil {
		life := before
		if c.node.life() != before {
			life = 0 // whose reply it is cannot be told
		}
		err = c.write(c.stream.space, life, ids, call)
	}
	if err != nil {
		c.mu.Lock()
		c.fault = errors.Join(c.fault, err)
		c.mu.Unlock()
	}
	return outcome
}

// callSince returns the times of a call that was sent then and has its answer now, in nanoseconds since begin by
// the monotonic clock.
func callSince(begin, sent time.Time) idlog.Call {
	end := time.Since(begin)
	return idlog.Call{Begin: max(1, int64(sent.Sub(begin))), End: max(1, int64(end))}
}

// servedSince reports whether the client has been served by a request that was due
// at or after t, and what became of its latest one.
func (c *client) servedSince(t time.Duration) (served bool, latest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.samples) - 1; i >= 0 && c.samples[i].due >= t; i-- {
		if latest == "" {
			latest = c.samples[i].outcome
		}
		if c.samples[i].outcome == ok {
			return true, latest
		}
	}
	return false, latest
}

// results returns what was recorded. It is called when run has returned.
func (c *client) results() ([]sample, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.samples, c.fault
}
