package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/leafpb"
)

const (
	// maxStreams bounds the streams to one node. A request that waits in the server
	// holds up those behind it on its stream, so each has a stream of its own as long
	// as there are enough; beyond that they queue behind one another.
	maxStreams = 32

	// connectTimeout is how long one attempt to connect may take.
	connectTimeout = time.Second
)

// errClosedLink: the link was closed, because its node is not in the list any more.
var errClosedLink = fmt.Errorf("%w: the client has given this node up", leaf.ErrNotReady)

// grpcLink is one gRPC connection to a node and the streams on it.
type grpcLink struct {
	dial  func() (*grpc.ClientConn, error)
	name  func() string  // of a new stream
	tasks sync.WaitGroup // goroutines of streams

	mu   sync.Mutex
	conn *conn
}

// conn is one connection of a link. Its fields are guarded by the link's mutex.
type conn struct {
	link    *grpcLink
	cc      *grpc.ClientConn
	streams map[*stream]struct{} // all, those that are being opened too
	opening int
	idle    []*stream  // open, nothing in flight; the last one used is the next one used
	waiting []*request // for a stream that is being opened
	broken  bool       // by Reset or Close: no new streams
}

// stream is one bidirectional stream. Answers come in the order of the requests.
type stream struct {
	conn   *conn
	cancel context.CancelFunc
	rpc    leafpb.LeafService_StreamClient // set before the first request

	// Guarded by the link's mutex.
	open    bool
	queue   []*request // in flight, the oldest first
	unsent  int        // how many at the queue's end were not sent yet
	sending bool       // somebody is in flush
	doomed  bool       // its oldest request was abandoned when Sweep last came by

	message leafpb.StreamRequest // of the one who is in flush
	name    string               // see request.Stream
}

// overGRPC returns the dialer of real programs.
func overGRPC(o *options) dialer {
	var header []string
	if o.token != "" {
		header = append(header, "authorization", "Bearer "+o.token)
	}
	if o.name != "" {
		header = append(header, "leaf-client", o.name)
	}
	secure := insecure.NewCredentials()
	if o.tls != nil {
		secure = credentials.NewTLS(o.tls.Clone())
	}
	settings := []grpc.DialOption{
		grpc.WithTransportCredentials(secure),
		grpc.WithDisableRetry(), // it would keep a copy of what is sent; flights retry by themselves
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 300 * time.Millisecond},
			MinConnectTimeout: connectTimeout,
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return open(metadata.AppendToOutgoingContext(ctx, header...), d, cc, method, opts...)
		}),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return call(metadata.AppendToOutgoingContext(ctx, header...), method, req, reply, cc, opts...)
		}),
	}
	streams := new(atomic.Int64)
	return func(n discovery.Node) (link, error) {
		name := func() string { return fmt.Sprintf("stream %d to %s", streams.Add(1), n.GRPC) }
		l := &grpcLink{name: name, dial: func() (*grpc.ClientConn, error) { return grpc.NewClient("passthrough:///"+n.GRPC, settings...) }}
		c, err := l.connect()
		if err != nil {
			return nil, leaf.BadField("address", n.GRPC, "must be HOST:PORT: "+err.Error())
		}
		l.conn = c
		return l, nil
	}
}

func (l *grpcLink) connect() (*conn, error) {
	cc, err := l.dial()
	if err != nil {
		return nil, err
	}
	return &conn{link: l, cc: cc, streams: make(map[*stream]struct{})}, nil
}

// Ask implements link.
func (l *grpcLink) Ask(r *request) {
	l.mu.Lock()
	c := l.conn
	switch {
	case c.broken:
		l.mu.Unlock()
		go r.Done(nil, errClosedLink)
	case len(c.idle) > 0:
		s := c.idle[len(c.idle)-1]
		c.idle = c.idle[:len(c.idle)-1]
		s.pushLocked(r)
		s.sending = true
		l.mu.Unlock()
		s.flush() // nothing is in flight, so the send cannot wait for the node
	case len(c.streams) < maxStreams:
		c.waiting = append(c.waiting, r)
		c.openLocked()
		l.mu.Unlock()
	default:
		c.queueLocked(r)
		l.mu.Unlock()
	}
}

// queueLocked puts r behind another request, or behind those that wait for a stream.
func (c *conn) queueLocked(r *request) {
	var shortest *stream
	for s := range c.streams {
		if s.open && (shortest == nil || len(s.queue) < len(shortest.queue)) {
			shortest = s
		}
	}
	if shortest == nil {
		c.waiting = append(c.waiting, r)
		return
	}
	shortest.pushLocked(r)
	if !shortest.sending {
		shortest.sending = true
		c.link.tasks.Go(shortest.flush) // the window of the stream may be full
	}
}

// openLocked opens one more stream in the background.
func (c *conn) openLocked() {
	ctx, cancel := context.WithCancel(context.Background())
	s := &stream{conn: c, cancel: cancel, name: c.link.name()}
	c.streams[s] = struct{}{}
	c.opening++
	c.link.tasks.Go(func() {
		defer cancel()
		rpc, err := leafpb.NewLeafServiceClient(c.cc).Stream(ctx)
		if !s.opened(rpc, err) {
			return
		}
		s.receive()
	})
}

// opened gives the stream the requests that wait for one. If it could not be opened all
// of them fail: the next one would not fare better.
func (s *stream) opened(rpc leafpb.LeafService_StreamClient, err error) bool {
	c := s.conn
	c.link.mu.Lock()
	c.opening--
	if err != nil {
		delete(c.streams, s)
		failed := c.waiting
		c.waiting = nil
		c.link.mu.Unlock()
		for _, r := range failed {
			r.Done(nil, statusError(err))
		}
		return false
	}
	s.rpc, s.open = rpc, true
	mine := (len(c.waiting) + c.opening) / (c.opening + 1) // its share, rounded up
	for _, r := range c.waiting[:mine] {
		s.pushLocked(r)
	}
	c.waiting = c.waiting[mine:]
	if mine == 0 {
		c.idle = append(c.idle, s)
		c.link.mu.Unlock()
		return true
	}
	s.sending = true
	c.link.tasks.Go(s.flush)
	c.link.mu.Unlock()
	return true
}

func (s *stream) pushLocked(r *request) {
	s.queue = append(s.queue, r)
	s.unsent++
}

// flush sends what was not sent yet, in order. One goroutine at a time is in it.
func (s *stream) flush() {
	mu := &s.conn.link.mu
	for {
		mu.Lock()
		if s.unsent == 0 || !s.open {
			s.sending = false
			if s.open && len(s.queue) == 0 { // the answer was faster
				s.conn.idle = append(s.conn.idle, s)
			}
			mu.Unlock()
			return
		}
		r := s.queue[len(s.queue)-s.unsent]
		s.unsent--
		mu.Unlock()
		s.message.Tag, s.message.Count, s.message.Mode = r.Tag, int32(r.Count), r.Mode
		if err := s.rpc.Send(&s.message); err != nil {
			if !errors.Is(err, io.EOF) { // io.EOF: receive learns why
				s.cancel()
			}
			return // sending stays set: nobody sends on this stream any more
		}
	}
}

// receive hands out answers until the stream ends.
func (s *stream) receive() {
	mu := &s.conn.link.mu
	var answer leafpb.StreamResponse
	for {
		if err := s.rpc.RecvMsg(&answer); err != nil {
			s.end(err)
			return
		}
		mu.Lock()
		if len(s.queue) == s.unsent {
			mu.Unlock()
			s.end(errors.New("an answer without a request"))
			return
		}
		r := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		s.doomed = false
		if len(s.queue) == 0 {
			s.queue = nil
			if !s.sending {
				s.conn.idle = append(s.conn.idle, s)
			}
		}
		mu.Unlock()
		r.Stream = s.name
		r.Done(answerOf(&answer, r.Count))
	}
}

// end takes the stream out of use. Its requests have an unknown outcome: they may have
// been served, so their IDs are lost.
func (s *stream) end(err error) {
	c := s.conn
	c.link.mu.Lock()
	s.open = false
	delete(c.streams, s)
	for i, other := range c.idle {
		if other == s {
			c.idle = append(c.idle[:i], c.idle[i+1:]...)
			break
		}
	}
	failed := s.queue
	s.queue, s.unsent = nil, 0
	c.link.mu.Unlock()
	for _, r := range failed {
		r.Done(nil, statusError(err))
	}
}
