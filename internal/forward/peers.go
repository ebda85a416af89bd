package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/owner"
	"github.com/leaf-idgen/leaf/leafpb"
)

// Metadata is the key under which a call shows the secret of its owner.
const Metadata = "leaf-forwarded"

const (
	connectTimeout = time.Second
	keepAlive      = 10 * time.Second // a node that is gone is found by its pings
	maxPeers       = 1024             // as many as nodes can have a session
)

// Peers are the connections to other nodes. All methods are safe for concurrent use.
type Peers struct {
	settings []grpc.DialOption

	mu    sync.Mutex
	conns map[string]*grpc.ClientConn // by address; nil: closed
}

// NewPeers returns Peers. secure is nil for plain TCP.
func NewPeers(secure *tls.Config) *Peers {
	transport := insecure.NewCredentials()
	if secure != nil {
		transport = credentials.NewTLS(secure)
	}
	return &Peers{conns: map[string]*grpc.ClientConn{}, settings: []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 300 * time.Millisecond},
			MinConnectTimeout: connectTimeout,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepAlive, Timeout: connectTimeout}),
	}}
}

// NextN implements Remote.
func (p *Peers) NextN(ctx context.Context, to owner.Route, tag string, n int) ([]leaf.Range, error) {
	conn, err := p.conn(to.Address)
	if err != nil {
		return nil, err
	}
	ctx = metadata.AppendToOutgoingContext(ctx, Metadata, to.Secret)
	answer, err := leafpb.NewLeafServiceClient(conn).Next(ctx, &leafpb.NextRequest{Tag: tag, Count: int32(n), Mode: leafpb.Mode_MODE_SEGMENT}) //nolint:gosec // at most leaf.MaxBatch
	if err != nil {
		return nil, answered(to.Address, err)
	}
	got, total, end := make([]leaf.Range, 0, len(answer.GetRanges())), int64(0), int64(0)
	for _, r := range answer.GetRanges() {
		if r.GetLo() < end || r.GetHi() <= r.GetLo() {
			return nil, broken(to.Address, fmt.Errorf("ranges %v are not in order", answer.GetRanges()))
		}
		end = r.GetHi()
		total += r.GetHi() - r.GetLo()
		got = append(got, leaf.Range{Lo: r.GetLo(), Hi: r.GetHi()})
	}
	if total != int64(n) {
		return nil, broken(to.Address, fmt.Errorf("%d IDs in place of %d", total, n))
	}
	return got, nil
}

// conn returns the connection to an address. When there are very many, those to nodes that are gone make room.
func (p *Peers) conn(address string) (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		return nil, fmt.Errorf("%w: shutting down", leaf.ErrNotReady)
	}
	if c := p.conns[address]; c != nil {
		return c, nil
	}
	if len(p.conns) >= maxPeers {
		for old, c := range p.conns {
			_ = c.Close() // its calls are tried again
			delete(p.conns, old)
		}
	}
	c, err := grpc.NewClient("passthrough:///"+address, p.settings...)
	if err != nil {
		return nil, broken(address, err)
	}
	p.conns[address] = c
	return c, nil
}

// Close ends all connections and calls.
func (p *Peers) Close() error {
	p.mu.Lock()
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	var errs []error
	for _, c := range conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// answered returns the error that the owner gave, in its words, or that there was no answer.
func answered(address string, err error) error {
	s, _ := status.FromError(err)
	code, after := "", time.Duration(0)
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == "leaf" {
				code = d.GetReason()
			}
		case *errdetails.RetryInfo:
			after = d.GetRetryDelay().AsDuration()
		}
	}
	class, known := leaf.ClassByCode(code)
	if !known {
		return broken(address, err)
	}
	cause := class.Err
	if after > 0 && class.Retryable {
		cause = leaf.Later(cause, "the owner says", after)
	}
	return &answerError{s.Message(), cause}
}

// answerError is an error that the owner answered, in its words.
type answerError struct {
	text  string
	cause error // the sentinel, or nil if the owner has an internal error
}

func (e *answerError) Error() string { return e.text }
func (e *answerError) Unwrap() error { return e.cause }

// brokenError is a call without an answer. Its text goes to clients, so it names no host.
type brokenError struct {
	address string
	cause   error
}

func broken(address string, cause error) error { return &brokenError{address, cause} }

func (e *brokenError) Error() string {
	return fmt.Sprintf("%v: the node that issues the tag, which is in strict order, does not answer", leaf.ErrNotReady)
}
func (e *brokenError) Unwrap() []error { return []error{leaf.ErrNotReady, e.cause} }
