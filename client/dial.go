package client

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
)

// connectTimeout is how long one attempt to connect may take.
const connectTimeout = time.Second

// overGRPC returns the dialer of real programs.
func overGRPC(o *options, g guard, t *tokens) dialer {
	var header []string
	if o.name != "" {
		header = append(header, "leaf-client", o.name)
	}
	secure := insecure.NewCredentials()
	if o.tls != nil {
		secure = credentials.NewTLS(o.tls)
	}
	if o.fixedToken != "" {
		header = append(header, "authorization", "Bearer "+o.fixedToken)
	}
	known := func(ctx context.Context, p *passage) (context.Context, error) {
		if t.ask != nil {
			p.token.Store(true)
			token, err := t.get(ctx)
			p.token.Store(false)
			if err != nil {
				p.blocked.Store(true)
				return ctx, err
			}
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
		}
		return metadata.AppendToOutgoingContext(ctx, header...), nil
	}
	inside := func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (stream grpc.ClientStream, err error) {
		p := passageOf(ctx, opts)
		if ctx, err = known(ctx, p); err != nil {
			return nil, err
		}
		if p.conn != nil { // not before: that a token takes long says nothing about the node
			defer p.conn.watchOpening()()
		}
		err = p.leave(ctx, func() error { stream, err = open(ctx, d, cc, method, opts...); return err })
		if err == nil && p.intercepted {
			stream = innerStream{stream, p}
		}
		return stream, err
	}
	interceptors := []grpc.StreamClientInterceptor{inside}
	if len(o.intercept) > 0 {
		interceptors = slices.Concat([]grpc.StreamClientInterceptor{g.outside}, o.intercept, interceptors)
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
		grpc.WithChainStreamInterceptor(interceptors...),
	}
	if o.connect != nil {
		settings = append(settings, grpc.WithContextDialer(g.connect(o.connect)))
	}
	if o.keepAlive > 0 {
		settings = append(settings, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: o.keepAlive, Timeout: connectTimeout, PermitWithoutStream: true}))
	}
	streams := new(atomic.Int64)
	return func(n discovery.Node) (link, error) {
		name := func() string { return fmt.Sprintf("stream %d to %s", streams.Add(1), n.GRPC) }
		l := &grpcLink{name: name, of: o.cluster, calls: make(chan struct{}, maxSequenceCalls), owned: make(chan struct{}, maxSequenceCalls), intercepted: len(o.intercept) > 0, dial: func() (*grpc.ClientConn, error) { return grpc.NewClient("passthrough:///"+n.GRPC, settings...) }}
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
	return &conn{link: l, cc: cc, limit: maxStreams, streams: make(map[*stream]struct{})}, nil
}
