package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf/internal/bounded"
)

// errClosed is returned by calls after Close.
var errClosed = errors.New("etcd: closed")

// conn is a client that is made by the first call that needs one. With a password, making it
// takes requests to etcd: a goroutine sends them, and each caller waits for the end of them
// until its own context ends.
type conn struct {
	cfg Config // but for the password, which may change

	failed   atomic.Pointer[failure] // the last one
	clusters clusters

	mu       sync.Mutex
	password string
	client   *clientv3.Client
	attempt  *attempt // the one under way
	closed   bool
	cancel   context.CancelFunc // ends an attempt
	ctx      context.Context    //nolint:containedctx // ends with the conn, not with a call
}

// attempt is one attempt to make a client.
type attempt struct {
	done   chan struct{} // closed when the fields below are set
	client *clientv3.Client
	err    error
}

func newConn(cfg Config) *conn {
	ctx, cancel := context.WithCancel(context.Background())
	return &conn{cfg: cfg, password: cfg.Password, ctx: ctx, cancel: cancel}
}

// do runs call with a client. If etcd does not know the log-in any more, which it says
// before it does anything else, do logs in again and repeats the call, once.
//
// The library can do that by itself, but shows the old log-in while it asks for a new
// one; etcd 3.4 refuses that, and the library asks again without end (found by
// TestPassword).
func (c *conn) do(ctx context.Context, call func(client *clientv3.Client) error) error {
	start := time.Now()
	client, err := c.get(ctx)
	if err != nil {
		return err
	}
	if err = c.one(call(client)); c.cfg.Username == "" || !unknownLogIn(err) {
		return c.explain(err, start)
	}
	c.forget(client)
	if client, err = c.get(ctx); err != nil {
		return err
	}
	return c.explain(c.one(call(client)), start)
}

// one returns the error of a call, or of its answer, which counts only if no other cluster answers too.
func (c *conn) one(err error) error {
	if err != nil {
		return err
	}
	return c.clusters.check(time.Now())
}

// failure is why an attempt of the library has found no etcd.
type failure struct {
	text string
	at   time.Time
}

// attempted is an interceptor for each attempt of the library. The library waits for a
// connection until the time of the call is up, and then returns only that.
func (c *conn) attempted(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := invoke(ctx, method, request, reply, cc, options...)
	s, _ := status.FromError(err)
	text, waited := strings.CutPrefix(s.Message(), "latest balancer error: ") // of a call that waited for a connection
	if waited || s.Code() == codes.Unavailable {
		c.failed.Store(&failure{text, time.Now()})
	}
	if err == nil {
		c.clusters.answered(reply, time.Now())
	}
	return err
}

// spaceCure is what to do about an etcd that is full. By default etcd keeps its history, and each
// renewal of a claim adds to it, so etcd fills up in time.
const spaceCure = "etcd keeps every value that a key ever had until it is compacted. Start it with --auto-compaction-retention=1h. Now run etcdctl compact --physical with the revision that etcdctl endpoint status --write-out=json shows, then etcdctl defrag for each member, and etcdctl alarm disarm"

// explain adds to the error of a call where etcd is and, if the time of the call is up,
// why the last attempt since start has failed.
func (c *conn) explain(err error, start time.Time) error {
	if err == nil {
		return nil
	}
	if errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) {
		return fmt.Errorf("etcd %q: %w: %s", c.cfg.Endpoints, err, spaceCure)
	}
	if f := c.failed.Load(); f != nil && f.at.After(start) && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("etcd %q: %s: %w", c.cfg.Endpoints, f.text, err)
	}
	return fmt.Errorf("etcd %q: %w", c.cfg.Endpoints, err)
}

func unknownLogIn(err error) bool {
	err = rpctypes.Error(err)
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrUserEmpty) || errors.Is(err, rpctypes.ErrAuthOldRevision)
}

// commit runs one transaction: then if all conditions hold, otherwise els. One that only
// compares reads a key, too: etcd answers a transaction without operations from whatever the
// member knows that it has reached, which may have been cut off long ago.
func (c *conn) commit(ctx context.Context, conditions []clientv3.Cmp, then, els []clientv3.Op) (response *clientv3.TxnResponse, err error) {
	if len(then) == 0 && len(els) == 0 {
		then = []clientv3.Op{clientv3.OpGet(string(conditions[0].KeyBytes()))}
	}
	err = c.do(ctx, func(client *clientv3.Client) (err error) {
		response, err = client.Txn(ctx).If(conditions...).Then(then...).Else(els...).Commit()
		return err
	})
	return response, err
}

// get returns the client.
func (c *conn) get(ctx context.Context) (*clientv3.Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.closed || c.client != nil {
		defer c.mu.Unlock()
		if c.closed {
			return nil, errClosed
		}
		return c.client, nil
	}
	a := c.attempt
	if a == nil {
		a = &attempt{done: make(chan struct{})}
		c.attempt = a
		go c.connect(a)
	}
	c.mu.Unlock()
	select {
	case <-a.done:
		return a.client, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("connect to etcd %q: %w", c.cfg.Endpoints, ctx.Err())
	}
}

// forget lets the next call make another client.
func (c *conn) forget(client *clientv3.Client) {
	c.mu.Lock()
	if c.client != client {
		c.mu.Unlock()
		return // another call was faster
	}
	c.client = nil
	c.mu.Unlock()
	_ = client.Close() // its log-in is worth nothing
}

// connect carries out an attempt. If it fails, the next call makes another one.
func (c *conn) connect(a *attempt) {
	made, err := bounded.Recover("the etcd client", c.logInAndMeet)
	if err != nil {
		err = fmt.Errorf("connect to etcd %q: %w", c.cfg.Endpoints, err)
	}
	c.mu.Lock()
	c.attempt = nil
	closed := c.closed
	if !closed {
		c.client = made
	}
	c.mu.Unlock()
	if closed && made != nil {
		_ = made.Close() // it was never used
		made, err = nil, errClosed
	}
	a.client, a.err = made, err
	close(a.done)
}

// logInTimes is how many times as long as a connection a log-in may take. etcd works on each for 60 ms of a processor
// and more, also when its client has left: nodes that leave too early, and begin again, keep it busy for ever.
const logInTimes = 10

// logIn returns a client that has exchanged the password, if there is one, for a token.
func (c *conn) logIn() (*clientv3.Client, error) {
	options := c.options()
	client, err := clientv3.New(options)
	if err != nil || c.cfg.Username == "" {
		return client, err
	}
	defer func() { _ = client.Close() }() // it has served its purpose
	ctx, cancel := context.WithTimeout(c.ctx, logInTimes*c.cfg.DialTimeout)
	defer cancel()
	response, err := client.Authenticate(ctx, c.cfg.Username, c.currentPassword())
	switch {
	case errors.Is(err, rpctypes.ErrAuthNotEnabled):
	case err != nil:
		return nil, fmt.Errorf("log in as %q: %w", c.cfg.Username, err)
	default:
		options.Token = response.Token
	}
	return clientv3.New(options)
}

// SetPassword sets the password of the log-ins from now on, and reports whether it is
// another one. A connection that is logged in stays so for
// as long as etcd knows it: etcd forgets it when the password changes, and the next call
// logs in again.
func (c *conn) SetPassword(password string) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = c.password != password
	c.password = password
	return changed
}

func (c *conn) currentPassword() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.password
}

func (c *conn) options() clientv3.Config {
	return clientv3.Config{
		Context:     c.ctx,
		Endpoints:   c.cfg.Endpoints,
		TLS:         c.cfg.TLS,
		DialTimeout: c.cfg.DialTimeout,
		Logger:      zap.NewNop(), // what it knows is in the errors that it returns
		// A connection that died in silence is noticed after the sum of both times. The
		// server treats more frequent pings as an attack.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			// The library's own limit of two minutes would outlast a claim. With a store in etcd, a
			// node serves soon after etcd answers again (guarantee 13).
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: c.cfg.DialTimeout,
		}), grpc.WithChainUnaryInterceptor(c.attempted)},
	}
}

// Close ends the connections, and waits for an attempt to make one. It is idempotent.
func (c *conn) Close() error {
	c.cancel()
	c.mu.Lock()
	client, a := c.client, c.attempt
	c.client, c.closed = nil, true
	c.mu.Unlock()
	if a != nil {
		<-a.done
	}
	if client == nil {
		return nil
	}
	if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("close etcd: %w", err)
	}
	return nil
}
