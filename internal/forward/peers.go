package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/answers"
	"github.com/leaf-idgen/leaf/internal/owner"
	"github.com/leaf-idgen/leaf/leafpb"
)

// forwardedKey is the metadata in which a call shows the secret of its owner; that of grpcd has the same name.
const forwardedKey = "leaf-forwarded"

const (
	connectTimeout = time.Second
	keepAlive      = 10 * time.Second // a node that is gone is found by its pings
	unused         = time.Minute      // after this time without a call a connection makes room: its session may have ended
	settled        = 10 * time.Second // after this time without a call that failed, it is logged that a node takes calls again

	// maxSequences bounds the calls for sequences under way on one connection.
	maxSequences = 128
)

// Peers are the connections to other nodes: one to each session of a node, and a node has a session in each database. Calls for
// tags of a database that does not answer take no stream from calls for tags of the others. All methods are safe for concurrent
// use.
type Peers struct {
	settings []grpc.DialOption
	log      *slog.Logger
	began    time.Time
	failing  sync.Map // by address of a node of which it was logged that it does not answer: when it did not last, since began

	mu    sync.Mutex
	conns map[owner.Route]*peer // by what sameOwner returns; nil: closed
}

// peer is the connection to one session of a node.
type peer struct {
	*grpc.ClientConn
	service leafpb.LeafServiceClient
	streams

	sequences chan struct{} // has one element for each call under way
	used      atomic.Int64  // when a call began last, in ns since Peers.began
}

// NewPeers returns Peers. secure returns how a connection begins at that moment, with the same ServerName at all times; nil for
// plain TCP.
func NewPeers(secure func() *tls.Config, log *slog.Logger) *Peers {
	transport := insecure.NewCredentials()
	if secure != nil {
		transport = current{credentials.NewTLS(secure()), secure}
	}
	return &Peers{log: log, began: time.Now(), conns: map[owner.Route]*peer{}, settings: []grpc.DialOption{
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

// current begins each connection with the certificates that are in force then.
type current struct {
	credentials.TransportCredentials

	secure func() *tls.Config
}

// ClientHandshake implements credentials.TransportCredentials.
func (c current) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(c.secure()).ClientHandshake(ctx, authority, conn)
}

// Clone implements credentials.TransportCredentials.
func (c current) Clone() credentials.TransportCredentials {
	return current{c.TransportCredentials.Clone(), c.secure}
}

// NextN implements Remote.
func (p *Peers) NextN(ctx context.Context, to owner.Route, tag string, n int) ([]leaf.Range, error) {
	conn, err := p.conn(to)
	if err != nil {
		return nil, err
	}
	got, err := conn.next(ctx, conn.service, to.Secret, tag, n)
	p.note(to.Address, err)
	return got, err
}

// NextEach implements Remote.
func (p *Peers) NextEach(ctx context.Context, to owner.Route, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	conn, err := p.conn(to)
	if err != nil {
		return nil, err
	}
	select {
	case conn.sequences <- struct{}{}:
	case <-ctx.Done():
		return nil, &brokenError{ctx.Err()}
	}
	defer func() { <-conn.sequences }()
	ctx = metadata.AppendToOutgoingContext(ctx, forwardedKey, to.Secret)
	said, err := conn.service.Sequence(ctx, answers.SequenceRequest(sequence, requests))
	if err != nil {
		err = answered(err)
	}
	p.note(to.Address, err)
	if err != nil {
		return nil, err
	}
	results, err := answers.Sequence(said.GetResults(), requests)
	if err != nil {
		return nil, &brokenError{err}
	}
	return results, nil
}

// note logs the first call of a row of them that the node did not answer, and the end of the row: what gRPC said, with
// hosts and certificates, which clients do not hear. A caller that left is no fault, nor is a secret that is refused: it
// is that of a session before. A node may answer on one connection and refuse another one, so the row ends late.
func (p *Peers) note(address string, err error) {
	last, failing := p.failing.Load(address)
	switch fault, broken := errors.AsType[*brokenError](err); {
	case broken && !fault.left():
		if _, failing = p.failing.Swap(address, time.Since(p.began)); !failing {
			p.log.Warn("requests for tags in strict order cannot be taken to the node that issues them", "address", address, "error", fault.cause)
		}
	case err == nil && failing && time.Since(p.began)-last.(time.Duration) >= settled: //nolint:forcetypeassert // note alone writes it
		if _, failing = p.failing.LoadAndDelete(address); failing {
			p.log.Info("the node takes requests for tags in strict order again", "address", address)
		}
	}
}

// conn returns the connection to an owner. A new one ends those that were not used lately.
func (p *Peers) conn(to owner.Route) (*peer, error) {
	to, now := sameOwner(to), time.Since(p.began)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		return nil, fmt.Errorf("%w: shutting down", leaf.ErrNotReady)
	}
	c := p.conns[to]
	if c == nil {
		conn, err := grpc.NewClient("passthrough:///"+to.Address, p.settings...)
		if err != nil {
			return nil, &brokenError{err}
		}
		for old, c := range p.conns {
			if now-time.Duration(c.used.Load()) > unused {
				_ = c.Close() // a call that takes so long is tried again
				delete(p.conns, old)
			}
		}
		c = &peer{
			ClientConn: conn, service: leafpb.NewLeafServiceClient(conn),
			streams: streams{calls: make(chan struct{}, maxStreams)}, sequences: make(chan struct{}, maxSequences),
		}
		p.conns[to] = c
	}
	c.used.Store(int64(now))
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

// answered returns the error that the owner gave as a status, or that there was no answer.
func answered(err error) error {
	s, _ := status.FromError(err)
	code, after := answers.Reason(s)
	return inWords(err, code, s.Message(), after)
}

// inWords returns the error that the owner gave, in its words. It is no answer if the code is not one of leaf's.
func inWords(cause error, code, message string, after time.Duration) error {
	if _, known := leaf.ClassByCode(code); !known {
		return &brokenError{cause}
	}
	return answers.Error(code, message, after)
}

func isBroken(err error) bool {
	_, broken := errors.AsType[*brokenError](err)
	return broken
}

// brokenError is a call without an answer. Its text goes to clients, so it names no host.
type brokenError struct{ cause error }

func (e *brokenError) Error() string {
	return fmt.Sprintf("%v: the node that issues the tag, which is in strict order, does not answer", leaf.ErrNotReady)
}
func (e *brokenError) Unwrap() []error { return []error{leaf.ErrNotReady, e.cause} }

// left reports whether the time of the caller was up, or it left: the node may be well.
func (e *brokenError) left() bool {
	code := status.FromContextError(e.cause).Code()
	if code == codes.Unknown {
		code = status.Code(e.cause)
	}
	return code == codes.DeadlineExceeded || code == codes.Canceled
}
