package client

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/answers"
	"github.com/leaf-idgen/leaf/leafpb"
)

// maxSequenceCalls bounds the calls of sequences at one node at the same time: those for which it is the owner, as far as is known,
// and as many others. The others may wait for an owner, as after a crash, and must not keep the first ones from theirs. Together with
// the streams they must stay below what a node allows for a connection (256), and proxies (about 100): a health check that finds no
// room would take the node for dead.
const maxSequenceCalls = 32

// Sequence implements link.
func (l *grpcLink) Sequence(ctx context.Context, owned bool, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, *leafpb.Route, error) {
	calls := l.calls
	if owned {
		calls = l.owned
	}
	select {
	case calls <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	var results []leaf.SequenceResult
	var route *leafpb.Route
	var err error
	done := make(chan struct{})
	l.mu.Lock()
	c := l.conn
	if c.broken {
		l.mu.Unlock()
		<-calls
		return nil, nil, errGivenUp
	}
	p := c.passage()
	l.tasks.Go(func() { // an interceptor may ignore the context
		defer func() { <-calls }()
		defer close(done)
		results, route, err = c.sequence(context.WithValue(ctx, passageKey{}, p), sequence, requests)
	})
	l.mu.Unlock()
	select {
	case <-done:
		if err != nil && l.gaveUp(c) {
			err = errGivenUp
		}
		return results, route, err
	case <-ctx.Done():
	}
	if held := p.held(); held != nil {
		return nil, nil, held
	}
	return nil, nil, ctx.Err()
}

// gaveUp reports whether the client itself has broken the connection.
func (l *grpcLink) gaveUp(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.broken
}

// sequence makes one call. It is a stream of one message each way, so that it passes the application's interceptors, as
// every other request of the client does.
func (c *conn) sequence(ctx context.Context, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, *leafpb.Route, error) {
	s, err := c.cc.NewStream(ctx, &grpc.StreamDesc{}, leafpb.LeafService_Sequence_FullMethodName)
	if err != nil {
		return nil, nil, sequenceError(err)
	}
	if err := s.SendMsg(answers.SequenceRequest(sequence, requests)); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, sequenceError(err)
	}
	var said leafpb.SequenceResponse
	if err := s.RecvMsg(&said); err != nil { // io.EOF of SendMsg: it says why
		return nil, nil, sequenceError(err)
	}
	if err := c.link.of.admitHeader(s); err != nil {
		return nil, nil, statusError(err)
	}
	results, err := answers.Sequence(said.GetResults(), requests)
	if err != nil {
		return nil, nil, &brokenError{cause: err}
	}
	return results, said.GetRoute(), nil
}

// sequenceError is statusError. A node of a version without sequences works for all else.
func sequenceError(err error) error {
	if s, ok := status.FromError(err); ok && s.Code() == codes.Unimplemented {
		if code, _ := answers.Reason(s); code == "" {
			return answers.Error("disabled", "the node is of a version without sequences: "+s.Message(), 0)
		}
	}
	return statusError(err)
}
