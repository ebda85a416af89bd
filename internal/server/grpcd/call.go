package grpcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/requestid"
)

// call is a stream as its handler sees it, and as the server watches it. The handler
// runs in a goroutine of its own, so that the stream can end while the handler waits
// for a request that may never come.
//
// What the handler does is in state, which only two parties change: the handler moves
// it to its next phase, and the server from receiving to over. So a request that was
// received is always answered, and none is received by a stream that is over.
type call struct {
	grpc.ServerStream
	state atomic.Uint64 // phase in the lowest two bits, above them a count of changes
	end   chan error    // gets how the server ends the stream

	ctx     context.Context //nolint:containedctx // of the stream, with its ID
	cluster func() string   // Config.Cluster
	named   bool            // the header shows the cluster's ID
	sent    bool            // the header is sent

	// What the last look of the server saw. Only sweep uses them.
	seen  uint64
	since time.Time
}

// The phases of a call.
const (
	working   uint64 = iota // in the handler
	receiving               // waits for a request
	sending                 // waits for the client to read
	over                    // ended by the server
	phaseMask = 3
)

// newCall writes the request ID of the stream, if it has one, and the ID of the cluster, if it is
// known, into the header of the reply.
func newCall(ss grpc.ServerStream, cluster func() string, id string) *call {
	c := &call{ServerStream: ss, end: make(chan error, 1), ctx: requestid.With(ss.Context(), id), cluster: cluster}
	if id != "" {
		_ = c.SetHeader(metadata.Pairs(requestid.Metadata, id)) // fails after the end of the stream only
	}
	_ = c.name() // fails after the end of the stream only
	return c
}

// Context implements grpc.ServerStream.
func (c *call) Context() context.Context { return c.ctx }

// errNamed ends a stream that began before the cluster's ID was known.
var errNamed = fmt.Errorf("%w: the node has learned the ID of its cluster; open the stream again, whose header shows it", leaf.ErrNotReady)

// name puts the cluster's ID into the header. A client compares the header once, with the
// first answer, so a stream whose header went without the ID must not outlive the moment
// in which the node learns it.
func (c *call) name() error {
	if c.named {
		return nil
	}
	id := c.cluster()
	switch {
	case id == "":
		return nil
	case c.sent:
		return errNamed
	}
	c.named = true
	return c.SetHeader(metadata.Pairs(clusterHeader, id))
}

// RecvMsg implements grpc.ServerStream. It returns io.EOF once the server has ended the
// stream.
func (c *call) RecvMsg(m any) error {
	if !c.enter(receiving) {
		return io.EOF
	}
	err := c.ServerStream.RecvMsg(m)
	if !c.enter(working) {
		return io.EOF
	}
	return err
}

// SendMsg implements grpc.ServerStream. The error can be errNamed: m is not sent, and the
// IDs in it are lost.
func (c *call) SendMsg(m any) error {
	if err := c.name(); err != nil {
		return err
	}
	c.sent = true
	c.enter(sending)
	err := c.ServerStream.SendMsg(m)
	c.enter(working)
	return err
}

// enter moves the handler to phase, unless the call is over.
func (c *call) enter(phase uint64) bool {
	old := c.state.Load()
	return old&phaseMask != over && c.state.CompareAndSwap(old, (old&^phaseMask)+(phaseMask+1)|phase)
}

// finish ends the stream with err, if its handler is waiting for a request and state is
// still old.
func (c *call) finish(old uint64, err error) {
	if old&phaseMask == receiving && c.state.CompareAndSwap(old, over) {
		c.end <- err
	}
}

// look notes the state at now and returns it, and since when it has not changed.
func (c *call) look(now time.Time) (state uint64, still time.Duration) {
	if state = c.state.Load(); state != c.seen || c.since.IsZero() {
		c.seen, c.since = state, now
	}
	return state, now.Sub(c.since)
}

// serveStream runs the handler of a stream. It is a grpc.StreamServerInterceptor.
func (s *Server) serveStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	c := newCall(ss, s.limits.Cluster, requestID(ss.Context(), s.limits.RequestIDs()))
	s.watch(c)
	defer s.unwatch(c)
	returned := make(chan error, 1)
	s.handlers.Go(func() { returned <- s.run(handler, srv, c) })
	select {
	case err := <-returned:
		return err
	case err := <-c.end:
		return err
	}
}

func (s *Server) run(handler grpc.StreamHandler, srv any, c *call) (err error) {
	defer recoverStatus(requestid.Log(s.log, requestid.ID(c.ctx)), &err)
	if err = handler(srv, c); errors.Is(err, errNamed) {
		return statusOf(s.log, err)
	}
	return err
}
