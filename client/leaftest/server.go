package leaftest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
)

// closeTimeout is how long calls under way may take when a client is closed.
const closeTimeout = 5 * time.Second

// Server is a Leaf server. All methods are safe for concurrent use.
type Server struct {
	t                  testing.TB // nil: not of a test
	addr               string
	segment, snowflake *issuer
	each               *sequences

	mu      sync.Mutex
	running *grpcd.Server // nil: stopped
	served  chan error
	clients []*client.Client
}

// New starts a server that knows the tags. It ends with the test, which fails if the
// server does.
func New(t testing.TB, tags ...string) *Server {
	t.Helper()
	s := newServer(t, tags)
	t.Cleanup(s.Close)
	return s
}

// NewServer starts a server that knows the tags and belongs to no test: for an Example,
// or a demonstration. It panics where New fails the test. The caller closes it.
func NewServer(tags ...string) *Server { return newServer(nil, tags) }

func newServer(t testing.TB, tags []string) *Server {
	s := &Server{
		t: t, addr: "127.0.0.1:0",
		segment:   &issuer{last: map[string]int64{}},
		snowflake: &issuer{last: map[string]int64{}, any: true},
	}
	s.each = &sequences{like: s.segment, next: map[string]map[string]int64{}}
	for _, tag := range tags {
		s.segment.last[tag] = 0
	}
	s.Start()
	return s
}

// Close closes the clients and stops the server. A test that called New need not call it. It
// may be repeated.
func (s *Server) Close() {
	s.mu.Lock()
	clients := s.clients
	s.clients = nil
	s.mu.Unlock()
	for _, c := range clients {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		_ = c.Close(ctx) // calls that are cut off are the test's own
		cancel()
	}
	s.Stop()
}

// Addr returns the address, HOST:PORT. It stays the same over Stop and Start.
func (s *Server) Addr() string { return s.addr }

// Node returns the server as a directory would list it.
func (s *Server) Node() discovery.Node {
	id := "leaftest-" + strings.ReplaceAll(s.addr, ":", "-")
	return discovery.Node{ID: id, Weight: discovery.DefaultWeight, GRPC: s.addr}
}

// Client returns a client of this server, which is closed with it.
func (s *Server) Client(opts ...client.Option) *client.Client {
	s.helper()
	c, err := client.New(client.Addresses(s.addr), opts...)
	if err != nil {
		s.fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, c)
	return c
}

// Stop ends the server as a kill does: connections break. It may be repeated.
func (s *Server) Stop() {
	s.helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.running.Shutdown(now) // says how many connections it had to cut
	err := <-s.served
	s.running = nil
	if err != nil {
		s.fatal(fmt.Errorf("serve: %w", err))
	}
}

// Start starts a stopped server again on its port; its numbers go on. It does nothing
// if the server runs.
func (s *Server) Start() {
	s.helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return
	}
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", s.addr)
	if err != nil {
		s.fatal(fmt.Errorf("listen: %w", err))
	}
	g, err := grpcd.New(ln, grpcd.Config{Access: access{leaf.Issuers{Segment: s.segment, Snowflake: s.snowflake, Sequence: s.each}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.fatal(err)
	}
	s.addr = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- g.Serve() }()
	s.running, s.served = g, served
}

// AddTag makes a tag known, or moves it: its next ID is first.
func (s *Server) AddTag(tag string, first int64) {
	s.segment.mu.Lock()
	defer s.segment.mu.Unlock()
	s.segment.last[tag] = first - 1
}

// Fail makes every request fail with err, one of the errors of package leaf or
// leaf.Throttled; nil ends it.
func (s *Server) Fail(err error) {
	s.change(func(i *issuer) { i.fails = err })
}

// Delay makes every request wait for d before it is answered.
func (s *Server) Delay(d time.Duration) {
	s.change(func(i *issuer) { i.delay = d })
}

func (s *Server) change(f func(*issuer)) {
	for _, i := range []*issuer{s.segment, s.snowflake} {
		i.mu.Lock()
		f(i)
		i.mu.Unlock()
	}
}

// Last returns the last ID of the tag that was issued, 0 if none was.
func (s *Server) Last(tag string) int64 {
	s.segment.mu.Lock()
	defer s.segment.mu.Unlock()
	return s.segment.last[tag]
}

func (s *Server) helper() {
	if s.t != nil {
		s.t.Helper()
	}
}

// fatal ends the test; without a test it panics.
func (s *Server) fatal(err error) {
	if s.t == nil {
		panic("leaftest: " + err.Error())
	}
	s.t.Helper()
	s.t.Fatalf("leaftest: %v", err)
}
