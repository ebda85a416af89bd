package client

import (
	"context"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/leafpb"
)

// link is the way to one node, and the seam of the tests: gRPC in programs, a fake in a
// bubble of synctest. All methods are safe for concurrent use.
type link interface {
	// Ask sends r and returns at once. r.Done is called exactly once, also if the link
	// breaks or is closed.
	Ask(r *request)

	// Sequence asks for numbers of entities and returns their results, or an error for all of them. It returns when
	// ctx ends, if not before; whether the node has given numbers is unknown then. The route is where the numbers of the
	// first entity are issued; nil: the node does not say. owned says that it is this node, as far as is known.
	Sequence(ctx context.Context, owned bool, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, *leafpb.Route, error)

	// Check asks whether the node serves: nil if it does, errNotServing if it says that
	// it does not, another error if it does not answer before ctx ends.
	Check(ctx context.Context) error

	// Abandon says that all callers that waited for r have left. The link may end r, which tells
	// the node to stop waiting, if that disturbs no other request.
	Abandon(r *request)

	// Held says which function of the application keeps r from the node, or its answer
	// from the client; nil: none.
	Held(r *request) error

	// Sweep is called every checkEvery or more rarely. It gives up requests that were abandoned
	// before the last Sweep.
	Sweep()

	// Reset breaks the connection and makes a new one: whatever is in flight fails.
	Reset()

	// Close fails whatever is in flight and returns when nothing of the link runs any
	// more. A request that comes later fails.
	Close()
}

// dialer makes the link to a node. It does not wait for the connection. The error is
// leaf.ErrBadRequest for an address that cannot be one.
type dialer func(n discovery.Node) (link, error)

// request asks one node for IDs.
type request struct {
	Mode  leafpb.Mode
	Tag   string
	Count int // 1 to leaf.MaxBatch

	// Stream is set before Done is called: a name of what answers in the order of its
	// requests. No two streams of a client share it.
	Stream string

	// Route is set before Done is called with IDs: where the tag is issued; nil: it is in plain order.
	Route *leafpb.Route

	attempt *attempt // that it is part of
}

// Done takes exactly Count IDs in growing order, or an error. It does not block and may be
// called from any goroutine, also from within Ask.
func (r *request) Done(ranges []leaf.Range, err error) {
	a := r.attempt
	a.batch.lane.client.answered(a, ranges, err)
}

// Abandoned says that no caller waits for the answer any more.
func (r *request) Abandoned() bool { return r.attempt.batch.isClosed() }
