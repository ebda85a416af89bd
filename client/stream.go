package client

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
)

const (
	// maxStreams bounds the streams to one node. A request that waits in the server
	// delays the requests behind it on its stream. So each request gets a stream of its
	// own, and requests share streams only when all maxStreams are in use. When a node
	// allows fewer streams, the connection lowers its limit.
	maxStreams = 32

	// maxAhead is how many requests of one stream are sent before the first of them is
	// answered. The node takes them one after the other; one that is still here can be
	// taken back.
	maxAhead = 2

	// openTime is how long the opening of a stream may take on a connection that is up.
	// It needs no answer of the node, so one that takes longer waits for another to end.
	openTime = 50 * time.Millisecond

	// callbackTime is how long the application's functions may hold up the opening of a
	// stream: longer than tokenTime, whose error says more.
	callbackTime = 2 * tokenTime
)

// errGivenUp is the end of a request whose stream the client itself has ended. It says
// nothing about the node.
var errGivenUp error = &brokenError{cause: errors.New("the client has ended the stream")}

// grpcLink is one gRPC connection to a node and the streams on it.
type grpcLink struct {
	dial  func() (*grpc.ClientConn, error)
	name  func() string  // of a new stream
	tasks sync.WaitGroup // goroutines of streams
	of    *cluster

	intercepted bool // the application's code runs when a request is sent

	mu       sync.Mutex
	conn     *conn
	checking *checking // the last health check, where there are interceptors; nil: none
}

// conn is one connection of a link. Its fields are guarded by the link's mutex.
type conn struct {
	link    *grpcLink
	cc      *grpc.ClientConn
	streams map[*stream]struct{} // open
	limit   int                  // of streams: maxStreams, or what the node allows less one for the health check
	opening *stream              // nil: none is being opened
	idle    []*stream            // open, nothing in flight; the last one used is the next one used
	waiting []*request           // for a stream that is being opened, or for the only one to make way
	broken  bool                 // by Reset or Close: no new streams
}

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

// Ask implements link.
func (l *grpcLink) Ask(r *request) {
	l.mu.Lock()
	c := l.conn
	switch {
	case c.broken:
		l.mu.Unlock()
		r.Done(nil, errGivenUp)
	case len(c.idle) > 0:
		s := c.idle[len(c.idle)-1]
		c.idle = c.idle[:len(c.idle)-1]
		s.pushLocked(r)
		s.sending = true
		if l.intercepted { // an interceptor may block, and a caller has a deadline
			l.tasks.Go(s.flush)
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		s.flush()
	default:
		c.waiting = append(c.waiting, r)
		c.spreadLocked()
		l.mu.Unlock()
	}
}

// spreadLocked opens a stream for the requests that wait, or puts them behind others if
// there are as many streams as there may be.
func (c *conn) spreadLocked() {
	switch {
	case len(c.waiting) == 0 || c.opening != nil:
	case len(c.streams) < c.limit:
		c.openLocked()
	default:
		for len(c.waiting) > 0 {
			s := c.shortestLocked()
			if s == nil {
				return // the only one makes way
			}
			c.queueLocked(c.waiting[0], s)
			c.waiting = c.waiting[1:]
		}
	}
}

// shortestLocked returns the stream with the fewest requests, nil if there is none.
func (c *conn) shortestLocked() (shortest *stream) {
	for s := range c.streams {
		if !s.leaving && (shortest == nil || len(s.queue) < len(shortest.queue)) {
			shortest = s
		}
	}
	return shortest
}

// queueLocked puts r behind the other requests of a stream.
func (c *conn) queueLocked(r *request, shortest *stream) {
	shortest.pushLocked(r)
	if !shortest.sending {
		shortest.sending = true
		c.link.tasks.Go(shortest.flush)
	}
}

// openLocked opens one more stream in the background. One at a time is opened: on a
// connection that is up it takes microseconds.
func (c *conn) openLocked() {
	p := c.passage()
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), passageKey{}, p))
	s := &stream{conn: c, cancel: cancel, name: c.link.name(), passage: p, began: time.Now()}
	if !c.link.intercepted { // an interceptor may look at a message later
		s.message = new(leafpb.StreamRequest)
	}
	c.opening = s
	c.link.tasks.Go(func() {
		defer cancel()
		rpc, err := leafpb.NewLeafServiceClient(c.cc).Stream(ctx)
		if s.opened(rpc, err) {
			s.receive()
		}
	})
}

// passage is the way of a stream, or of a health check, that is opened on c.
func (c *conn) passage() *passage { return &passage{conn: c, intercepted: c.link.intercepted} }

// watchOpening calls makeRoom when gRPC takes long to open a stream. The caller calls end
// when it is open; makeRoom does not run after it.
func (c *conn) watchOpening() (end func()) {
	ended := make(chan struct{})
	late := time.AfterFunc(openTime, func() {
		defer close(ended)
		c.makeRoom()
	})
	return func() {
		if !late.Stop() {
			<-ended
		}
	}
}

// makeRoom is called when a stream or a health check waits for another stream to end:
// the node allows no more than are open. One of them makes way for the health check.
func (c *conn) makeRoom() {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if len(c.streams) == 0 || c.broken || c.cc.GetState() != connectivity.Ready {
		return // the connection is what takes so long
	}
	c.limit = max(1, len(c.streams)-1)
	if c.opening != nil {
		c.opening.shutLocked()
		c.opening = nil
	}
	if s := c.shortestLocked(); s != nil {
		s.leaving = true
		kept := len(s.queue) - s.unsent
		c.waiting = append(c.waiting, s.queue[kept:]...)
		s.queue, s.unsent = slices.Delete(s.queue, kept, len(s.queue)), 0
		if len(s.queue) == 0 {
			s.shutLocked()
		}
	}
	c.spreadLocked()
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
		r.Stream = s.name
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
