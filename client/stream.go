package client

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
)

// errGivenUp is the end of a request whose stream the client itself has ended. It says
// nothing about the node.
var errGivenUp error = &brokenError{cause: errors.New("the client has ended the stream")}

// stream is one bidirectional stream. Answers come in the order of the requests.
type stream struct {
	conn   *conn
	cancel context.CancelFunc
	rpc    leafpb.LeafService_StreamClient // set before the first request

	passage *passage
	began   time.Time // when its opening began

	// Guarded by the link's mutex.
	open    bool       // among the streams of conn: it may get requests
	leaving bool       // it gets no more requests, and is shut when it is idle
	shut    bool       // the client has ended it
	queue   []*request // in flight, the oldest first
	unsent  int        // how many at the queue's end were not sent yet
	sending bool       // a goroutine is in flush
	doomed  bool       // its oldest request was abandoned when Sweep last came by

	failed error // of a request that could not be sent, which ended the stream; nil: none did

	message *leafpb.StreamRequest // used by the goroutine that is in flush; nil: each has its own
	name    string                // see request.Stream
}

// opened puts the stream among the others. If it could not be opened all requests that
// wait for one fail: the next one would not fare better.
func (s *stream) opened(rpc leafpb.LeafService_StreamClient, err error) bool {
	c := s.conn
	c.link.mu.Lock()
	if s.shut {
		c.link.mu.Unlock()
		return false
	}
	c.opening = nil
	if err != nil {
		failed := c.waiting
		c.waiting = nil
		c.link.mu.Unlock()
		for _, r := range failed {
			r.Done(nil, statusError(err))
		}
		return false
	}
	s.rpc, s.open = rpc, true
	c.streams[s] = struct{}{}
	if s.nextLocked() {
		c.link.tasks.Go(s.flush)
	}
	c.spreadLocked()
	c.link.mu.Unlock()
	return true
}

// nextLocked gives a stream without a request the one that has waited longest, which the
// caller must flush, or puts it among the idle.
func (s *stream) nextLocked() (flush bool) {
	c := s.conn
	switch {
	case !s.open:
	case s.leaving:
		s.shutLocked()
	case len(c.waiting) > 0:
		s.pushLocked(c.waiting[0])
		c.waiting = c.waiting[1:]
		s.sending = true
		return true
	default:
		c.idle = append(c.idle, s)
	}
	return false
}

// shutLocked ends the stream: from this moment it gets no request. Its requests end
// with errGivenUp, those that the node has answered meanwhile with their IDs.
func (s *stream) shutLocked() {
	s.shut = true
	s.removeLocked()
	s.cancel()
}

// removeLocked takes the stream out of use.
func (s *stream) removeLocked() {
	c := s.conn
	s.open = false
	delete(c.streams, s)
	if i := slices.Index(c.idle, s); i >= 0 {
		c.idle = slices.Delete(c.idle, i, i+1)
	}
	if len(c.streams) == 0 {
		c.limit = maxStreams // it may be another connection from now on
		c.spreadLocked()
	}
}

func (s *stream) pushLocked(r *request) {
	s.queue = append(s.queue, r)
	s.unsent++
}

// flush sends what was not sent yet, in order, as far as maxAhead allows. One goroutine
// at a time is in it. It does not wait for the node: the window of a stream takes more.
func (s *stream) flush() {
	mu := &s.conn.link.mu
	for {
		mu.Lock()
		if s.unsent == 0 || !s.open || len(s.queue)-s.unsent >= maxAhead {
			s.sending = false
			more := len(s.queue) == 0 && s.nextLocked() // the answer was faster
			mu.Unlock()
			if more {
				continue
			}
			return
		}
		r := s.queue[len(s.queue)-s.unsent]
		s.unsent--
		mu.Unlock()
		if err := s.send(r); err != nil {
			if !errors.Is(err, io.EOF) { // io.EOF: receive learns why
				mu.Lock()
				s.failed = err
				mu.Unlock()
				s.cancel()
			}
			return // sending stays set: nothing is sent on this stream any more
		}
	}
}

// send sends one request.
func (s *stream) send(r *request) error {
	m := s.message
	if m == nil {
		m = new(leafpb.StreamRequest)
	}
	m.Tag, m.Count, m.Mode = r.Tag, int32(r.Count), r.Mode
	return s.rpc.Send(m)
}

// receive hands out answers until the stream ends. What is no answer to the oldest request
// ends it: the next one may be meant for another request, of another tag.
func (s *stream) receive() {
	mu := &s.conn.link.mu
	answer := new(leafpb.StreamResponse)
	for first := true; ; first = false {
		if s.conn.link.intercepted { // it may say that it has received one and leave the last one in place
			answer = new(leafpb.StreamResponse)
		}
		err := s.rpc.RecvMsg(answer)
		if err == nil && first {
			err = s.conn.link.of.admitHeader(s.rpc)
		}
		if err != nil {
			s.end(err)
			return
		}
		mu.Lock()
		if len(s.queue) == s.unsent {
			mu.Unlock()
			s.end(errors.New("an answer without a request"))
			return
		}
		r := s.queue[0] // it was sent, so nothing else takes it out
		mu.Unlock()
		ranges, failed := answerOf(answer, r.Count)
		if isBroken(failed) {
			s.end(failed)
			return
		}
		mu.Lock()
		if errors.Is(failed, leaf.ErrUnauthenticated) {
			if !first { // the token of the stream counted: it was revoked since, and a new stream asks for another
				s.shutLocked()
				mu.Unlock()
				s.end(failed)
				return
			}
			s.leaving = true
		}
		s.queue[0] = nil
		s.queue = s.queue[1:]
		s.doomed = false
		flush := false
		if len(s.queue) == 0 {
			s.queue = nil
			flush = !s.sending && s.nextLocked()
		} else if s.unsent > 0 && !s.sending {
			s.sending, flush = true, true
		}
		mu.Unlock()
		r.Stream, r.Route = s.name, answer.GetRoute()
		r.Done(ranges, failed)
		switch {
		case flush && s.conn.link.intercepted: // other answers do not wait for an interceptor that sends
			s.conn.link.tasks.Go(s.flush)
		case flush:
			s.flush()
		}
	}
}

// end takes the stream out of use. Its requests have an unknown outcome: they may have
// been served, so their IDs are lost.
func (s *stream) end(err error) {
	mu := &s.conn.link.mu
	mu.Lock()
	if s.open {
		s.removeLocked()
	}
	if s.failed != nil {
		err = s.failed
	}
	if err = statusError(err); s.shut {
		err = errGivenUp
	}
	failed := s.queue
	s.queue, s.unsent = nil, 0
	mu.Unlock()
	for _, r := range failed {
		r.Done(nil, err)
		if e, ok := errors.AsType[*brokenError](err); ok && e.ids > 0 { // they came once
			err = &brokenError{cause: e.cause}
		}
	}
}
