package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

// Times of a stream. Variables, for tests.
var (
	liveEvery = 2 * time.Second
	pingEvery = 15 * time.Second
	writeTime = 10 * time.Second // for a reader to take an event
)

// serveLive streams one view by server-sent events: an event for each change, and a comment
// every 15 s, so that no proxy takes the stream for dead.
func (c *Console) serveLive(w http.ResponseWriter, r *http.Request) {
	view, ok := c.views()[r.URL.Query().Get("view")]
	err := c.admit(r)
	switch {
	case err != nil:
	case !c.cfg.Live:
		err = fmt.Errorf("%w: this port has no streams", leaf.ErrDisabled)
	case !ok:
		err = leaf.BadField("view", r.URL.Query().Get("view"), "must be overview, tags or snowflake")
	}
	if err != nil {
		problem.Write(w, c.cfg.Logger, err)
		return
	}
	select {
	case c.streams <- struct{}{}:
		defer func() { <-c.streams }()
	default:
		problem.Write(w, c.cfg.Logger, fmt.Errorf("%w: %d streams are open; close a page of the console", leaf.ErrNotReady, maxStreams))
		return
	}
	s := stream{w: w, to: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", problem.NoStore)
	w.Header().Set("X-Accel-Buffering", "no")
	if s.send("retry: 2000\n\n") != nil {
		return
	}
	tick, ping := time.NewTicker(liveEvery), time.NewTicker(pingEvery)
	defer tick.Stop()
	defer ping.Stop()
	for {
		if c.admit(r) != nil {
			_ = s.send("event: end\ndata: {}\n\n")
			return
		}
		reply, err := view(r.Context(), r.URL.Query())
		if err != nil || s.event(reply) != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-c.ended.Done():
			return
		case <-ping.C:
			if s.send(": ping\n\n") != nil {
				return
			}
		case <-tick.C:
		}
	}
}

// stream is the connection of one reader.
type stream struct {
	w    http.ResponseWriter
	to   *http.ResponseController
	last []byte
}

// event sends a view if it has changed.
func (s *stream) event(v any) error {
	data, err := json.Marshal(v)
	if err != nil || bytes.Equal(data, s.last) {
		return err
	}
	s.last = data
	return s.send("data: " + string(data) + "\n\n") // JSON has no line feed
}

func (s *stream) send(text string) error {
	if err := s.to.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.to.Flush()
}
