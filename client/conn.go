package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/leaf-idgen/leaf/leafpb"
)

const (
	// maxStreams bounds the streams to one node. A request that waits in the server
	// delays the requests behind it on its stream. So each request gets a stream of its
	// own, and requests share streams only when all maxStreams are in use. When a node
	// allows fewer streams, the connection lowers its limit.
	maxStreams = 32

	// maxAhead is how many requests of one stream are sent before the first of them is
	// answered. The node serves them one after the other. A request that is not sent yet
	// can still be withdrawn, or be moved to another stream.
	maxAhead = 2

	// openTime is how long the opening of a stream may take on a connection that is up.
	// gRPC opens a stream without an answer of the node. So when an opening takes longer,
	// the node allows no more streams, and gRPC waits until an open stream ends.
	openTime = 50 * time.Millisecond

	// callbackTime is how long the application's functions may delay the opening of a
	// stream. It is longer than tokenTime, so that a slow token function ends with the
	// error of WithTokenFunc, which names the cause.
	callbackTime = 2 * tokenTime
)

// grpcLink is one gRPC connection to a node and the streams on it.
type grpcLink struct {
	dial  func() (*grpc.ClientConn, error)
	name  func() string  // of a new stream
	tasks sync.WaitGroup // goroutines of streams
	of    *cluster

	calls chan struct{} // of sequences, under way, for which the node is not known to be the owner
	owned chan struct{} // the others

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
				return // the only stream is about to end
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

// passage returns the passage for a stream or a health check that is opened on c.
func (c *conn) passage() *passage { return &passage{conn: c, intercepted: c.link.intercepted} }

// watchOpening calls giveUpStream when gRPC takes long to open a stream. The caller calls end
// when it is open; giveUpStream does not run after it.
func (c *conn) watchOpening() (end func()) {
	ended := make(chan struct{})
	late := time.AfterFunc(openTime, func() {
		defer close(ended)
		c.giveUpStream()
	})
	return func() {
		if !late.Stop() {
			<-ended
		}
	}
}

// giveUpStream is called when a new stream or a health check cannot open, because the node allows
// no more streams than are open. It lowers the limit of streams and ends the open stream with
// the fewest requests, so that a health check can open.
func (c *conn) giveUpStream() {
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
