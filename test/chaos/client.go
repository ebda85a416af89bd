package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
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
)

// stream is what one client asks a node for.
type stream struct {
	name  string // in reports
	space string // the IDs that must be distinct: the tag, or "snowflake"
	path  string // of the request
	count int
	rate  float64 // requests per second
	stock bool    // a range lasts for longer than any outage
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
	http   *http.Client
	write  func(space string, life int, ids []int64) error // into the log

	mu      sync.Mutex
	samples []sample
	fault   error // of the log, or a reply that makes no sense
}

func newClient(n *node, s stream, begin time.Time, write func(string, int, []int64) error) *client {
	return &client{
		node: n, stream: s, begin: begin, write: write,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}},
	}
}

// run asks until ctx ends. A request is due at every beat, whatever became of the
// one before; one whose deadline has passed before it could be sent is not sent.
func (c *client) run(ctx context.Context) {
	defer c.http.CloseIdleConnections()
	beat := time.Duration(float64(time.Second) / c.stream.rate)
	first := time.Since(c.begin)
	for i := 0; ; i++ {
		due := first + time.Duration(i)*beat
		if pause(ctx, due-time.Since(c.begin)) != nil {
			return
		}
		outcome := unsent
		if time.Since(c.begin)-due <= deadline {
			outcome = c.ask(context.WithoutCancel(ctx))
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
func (c *client) ask(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before := c.node.life()
	ids, outcome, err := c.fetch(ctx)
	if err == nil && ids != nil {
		life := before
		if c.node.life() != before {
			life = 0 // whose reply it is cannot be told
		}
		err = c.write(c.stream.space, life, ids)
	}
	if err != nil {
		c.mu.Lock()
		c.fault = errors.Join(c.fault, err)
		c.mu.Unlock()
	}
	return outcome
}

// fetch returns the IDs, or why there are none. An error is what the program must
// never do.
func (c *client) fetch(ctx context.Context) (ids []int64, outcome string, err error) {
	target := "http://" + c.node.addr + c.stream.path
	if c.stream.count > 1 {
		target += "?count=" + strconv.Itoa(c.stream.count)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, cut, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, lost(err), nil // an outcome, which is counted
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, lost(err), nil // a reply that was cut off is not used, not even in part
	}
	if resp.StatusCode != http.StatusOK {
		var problem struct {
			Code string `json:"code"`
		}
		if err := json.Unmarshal(body, &problem); err != nil || problem.Code == "" {
			return nil, resp.Status, fmt.Errorf("%s of %s: an error without a code: %q", resp.Status, target, body)
		}
		return nil, problem.Code, nil
	}
	for line := range strings.FieldsSeq(string(body)) {
		id, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			return nil, resp.Status, fmt.Errorf("%s: %w", target, err)
		}
		ids = append(ids, id)
	}
	if len(ids) != c.stream.count {
		return nil, resp.Status, fmt.Errorf("%s: %d IDs, asked for %d", target, len(ids), c.stream.count)
	}
	return ids, ok, nil
}

// lost names how a reply was lost.
func lost(err error) string {
	var n net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return noListen
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &n) && n.Timeout():
		return timeout
	}
	return cut
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
