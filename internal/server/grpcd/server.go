package grpcd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"

	"github.com/leaf-idgen/leaf/internal/requestid"
	"github.com/leaf-idgen/leaf/internal/server/accept"
	"github.com/leaf-idgen/leaf/leafpb"
)

// Server is a gRPC server. All methods are safe for concurrent use.
type Server struct {
	ln     *accept.Listener
	limits Config // with defaults; only the limits are used here
	log    *slog.Logger
	grpc   *grpc.Server
	health *health

	draining atomic.Bool
	done     chan struct{}  // closed when keep may end
	handlers sync.WaitGroup // of streams

	mu      sync.Mutex
	stopped bool // done is closed
	calls   map[*call]struct{}
}

// New returns a server for cfg on a listener, which it owns unless it returns an error. Clients
// can connect already; they are answered once Serve runs. The error is leaf.ErrBadRequest for a
// bad Config.
func New(ln net.Listener, cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	s := &Server{
		ln:     accept.New(ln, accept.Config{MaxConns: cfg.MaxConns, Logger: cfg.Logger}),
		limits: cfg,
		log:    cfg.Logger,
		health: newHealth(cfg.Ready, cfg.MaxWatches),
		done:   make(chan struct{}),
		calls:  make(map[*call]struct{}),
	}
	s.grpc = grpc.NewServer(
		grpc.Creds(newHandshaker(cfg.TLS)),
		grpc.ConnectionTimeout(cfg.ConnectTimeout),
		grpc.MaxConcurrentStreams(uint32(cfg.MaxStreams)),
		grpc.MaxRecvMsgSize(maxRequestBytes),
		grpc.MaxHeaderListSize(maxMetadataBytes),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(4*window),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: cfg.IdleTimeout,
			Time:              cfg.KeepAlive,
			Timeout:           cfg.KeepAliveTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: cfg.MinPing, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.serveCall),
		grpc.StreamInterceptor(s.serveStream),
	)
	leafpb.RegisterLeafServiceServer(s.grpc, &service{access: cfg.Access, formats: cfg.Formats, times: cfg.Times, route: cfg.Route, routeEach: cfg.RouteEntity, forwarded: cfg.Forwarded, log: cfg.Logger})
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	return s, nil
}

// Addr returns the bound address.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Connections returns how many connections are open.
func (s *Server) Connections() int { return s.ln.Open() }

// Refused returns how many connections were refused, because MaxConns were open.
func (s *Server) Refused() int64 { return s.ln.Refused() }

// Serve accepts connections until Shutdown is called, and then returns nil. Any other
// end is the listener's error. It can be called once.
func (s *Server) Serve() error {
	if ok, err := s.ln.Begin(s.keep); !ok {
		return err
	}
	err := s.grpc.Serve(s.ln)
	if err == nil || s.draining.Load() {
		return nil
	}
	return fmt.Errorf("serve gRPC on %s: %w", s.Addr(), err)
}

// clusterHeader is what clients compare.
const clusterHeader = "leaf-cluster"

// serveCall runs the handler of a call that is no stream. It is a
// grpc.UnaryServerInterceptor.
func (s *Server) serveCall(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
	id := requestID(ctx, s.limits.RequestIDs())
	ctx = requestid.With(ctx, id)
	defer recoverStatus(requestid.Log(s.log, id), &err)
	if id != "" {
		_ = grpc.SetHeader(ctx, metadata.Pairs(requestid.Metadata, id)) // fails after the end of the call only
	}
	defer func() { // after the handler: the ID may be known since then
		if id := s.limits.Cluster(); id != "" {
			_ = grpc.SetHeader(ctx, metadata.Pairs(clusterHeader, id)) // fails after the end of the call only
		}
	}()
	return handler(ctx, req)
}

func (s *Server) watch(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[c] = struct{}{}
}

func (s *Server) unwatch(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c)
}

// keep looks after the streams and the health service.
func (s *Server) keep() {
	accept.Every(min(healthEvery, s.limits.WriteTimeout/4), s.done, func(now time.Time) {
		s.health.poll()
		s.closeUnread(now)
	})
}

// closeUnread closes the connections of streams whose client does not read. The end of
// the stream alone would not help: it waits behind the answers.
func (s *Server) closeUnread(now time.Time) {
	for _, l := range s.unread(now) {
		_ = l.Close()
	}
}

func (s *Server) unread(now time.Time) (found []*accept.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.calls {
		if state, still := c.look(now); state&phaseMask == sending && still >= s.limits.WriteTimeout {
			if id := identityOf(c.Context()); id != nil {
				found = append(found, id.link)
			}
		}
	}
	return found
}
