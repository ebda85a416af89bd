package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/leaf-idgen/leaf"
)

// MaxDrainDelay is the longest delay of a drain.
const MaxDrainDelay = 10 * time.Minute

// Drainer is what a node can do to leave its cluster.
type Drainer interface {
	// Drain begins to stop the node and returns at once: the node says that it is not
	// ready and leaves the list of nodes, serves for the delay, 0 to MaxDrainDelay,
	// ends its connections, gives unused IDs back, and its process ends. Info.Stage
	// tells how far it is. A negative delay is the node's own, drain-delay. Further
	// calls change nothing. Error: leaf.ErrBadRequest.
	Drain(ctx context.Context, delay time.Duration) error
}

// CheckDrainDelay returns leaf.ErrBadRequest if Drain may not be called with delay.
func CheckDrainDelay(delay time.Duration) error {
	if delay > MaxDrainDelay {
		return leaf.BadField("delay", delay, "must be at most 10m")
	}
	return nil
}

// Drain implements Drainer.
func (c *Client) Drain(ctx context.Context, delay time.Duration) error {
	query := url.Values{}
	if delay >= 0 {
		query.Set("delay", delay.String())
	}
	_, err := call[struct{}](ctx, c, http.MethodPost, "/v1/drain", query, nil)
	return err
}

// drainDelay returns the delay that r asks for, below 0 for none. What it does not
// understand it refuses: somebody who wanted a delay must not get none.
func drainDelay(r *http.Request) (time.Duration, error) {
	if n, err := io.ReadFull(r.Body, make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return 0, leaf.BadField("body", "...", "must be empty; the delay is ?delay=DURATION")
	}
	query := r.URL.Query()
	for name, values := range query {
		if name != "delay" || len(values) > 1 {
			return 0, leaf.BadField("parameter", name, "is not known or there twice; the only one is delay")
		}
	}
	if !query.Has("delay") {
		return -1, nil
	}
	text := query.Get("delay")
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, leaf.BadField("delay", text, "must be a duration from 0s to 10m")
	}
	return d, CheckDrainDelay(d)
}
