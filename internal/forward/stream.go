package forward

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/answers"
	"github.com/leaf-idgen/leaf/leafpb"
)

// maxStreams bounds the calls for IDs under way on one connection, and so its streams. Together with maxSequences it stays below
// what a node allows for a connection (256), so that neither of them waits for the other.
const maxStreams = 96

// streams are the streams of one connection. To open a stream costs more than a call, so a stream goes from call to call.
//
// A stream has one call at a time, whose goroutine itself sends and receives: no other goroutine has to wake it, and no
// answer can reach another call. A stream whose call ends without an answer is not used again.
type streams struct {
	calls chan struct{} // has one element for each call under way

	mu      sync.Mutex
	resting []*stream // the last one used is the next one used
}

// stream is one stream, with its messages, which are used again and again.
type stream struct {
	ctx    context.Context //nolint:containedctx // of the stream, which outlives a call
	cancel context.CancelFunc
	rpc    leafpb.LeafService_StreamClient // nil: not open yet

	asked leafpb.StreamRequest
	said  leafpb.StreamResponse
}

// next asks the node for n IDs of a tag.
func (all *streams) next(ctx context.Context, service leafpb.LeafServiceClient, secret, tag string, n int) ([]leaf.Range, error) {
	select {
	case all.calls <- struct{}{}:
	case <-ctx.Done():
		return nil, &brokenError{ctx.Err()}
	}
	defer func() { <-all.calls }()
	for {
		s := all.take(secret)
		rested := s.rpc != nil
		left := context.AfterFunc(ctx, s.cancel)
		err := s.exchange(service, tag, n)
		alone := !left() // the stream ends with the call, also if its answer was faster
		switch {
		case err == nil:
			got, err := read(&s.said, n)
			if alone || isBroken(err) {
				s.cancel()
			} else {
				all.rest(s)
			}
			return got, err
		case alone:
			return nil, &brokenError{ctx.Err()} // what the stream says is that it was cancelled
		}
		s.cancel()
		if err = answered(err); !rested || !isBroken(err) {
			return nil, err
		}
		// The stream may have ended while it rested. Another one tells more. If the node has taken IDs, they are lost.
	}
}

// exchange makes one call. It opens the stream if it is new.
func (s *stream) exchange(service leafpb.LeafServiceClient, tag string, n int) (err error) {
	if s.rpc == nil {
		if s.rpc, err = service.Stream(s.ctx); err != nil {
			return err
		}
	}
	s.asked.Tag, s.asked.Count, s.asked.Mode = tag, int32(n), leafpb.Mode_MODE_SEGMENT //nolint:gosec // at most leaf.MaxBatch
	if err := s.rpc.Send(&s.asked); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return s.rpc.RecvMsg(&s.said) // if the stream has ended, it says why
}

// read returns what an answer holds.
func read(said *leafpb.StreamResponse, n int) ([]leaf.Range, error) {
	if e := said.GetError(); e != nil {
		return nil, inWords(errors.New(e.GetMessage()), e.GetCode(), e.GetMessage(), time.Duration(e.GetRetryAfterMs())*time.Millisecond)
	}
	got, _, err := answers.Ranges(said.GetRanges(), n)
	if err != nil {
		return nil, &brokenError{err}
	}
	return got, nil
}

// take returns a stream for a call: the one that rested last, or a new one, which shows the secret.
func (all *streams) take(secret string) *stream {
	all.mu.Lock()
	defer all.mu.Unlock()
	if last := len(all.resting) - 1; last >= 0 {
		s := all.resting[last]
		all.resting = all.resting[:last]
		return s
	}
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(context.Background(), forwardedKey, secret))
	return &stream{ctx: ctx, cancel: cancel}
}

// rest keeps a stream for the next call.
func (all *streams) rest(s *stream) {
	s.said.Reset() // it may hold 100,000 ranges
	all.mu.Lock()
	defer all.mu.Unlock()
	all.resting = append(all.resting, s)
}
