package leaftest

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/server/grpcd"
)

// Server is a Leaf server. All methods are safe for concurrent use.
type Server struct {
	t                  testing.TB
	addr               string
	segment, snowflake *issuer

	mu      sync.Mutex
	running *grpcd.Server // nil: stopped
	served  chan error
}

// New starts a server that knows the tags. It ends with the test.
func New(t testing.TB, tags ...string) *Server {
	t.Helper()
	s := &Server{
		t: t, addr: "127.0.0.1:0",
		segment:   &issuer{last: map[string]int64{}},
		snowflake: &issuer{last: map[string]int64{}, any: true},
	}
	for _, tag := range tags {
		s.segment.last[tag] = 0
	}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Addr returns the address, HOST:PORT. It stays the same over Stop and Start.
func (s *Server) Addr() string { return s.addr }

// Node returns the server as a resolver would list it.
func (s *Server) Node() discovery.Node {
	return discovery.Node{ID: s.addr, Weight: discovery.DefaultWeight, GRPC: s.addr}
}

// Client returns a client of this server, which is closed when the test ends.
func (s *Server) Client(opts ...client.Option) *client.Client {
	s.t.Helper()
	c, err := client.New(client.Addresses(s.addr), opts...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx) // calls that are cut off are the test's own
	})
	return c
}

// Stop ends the server as a kill does: connections break. It may be repeated.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.running.Shutdown(now) // says how many connections it had to cut
	if err := <-s.served; err != nil {
		s.t.Errorf("leaftest: serve: %v", err)
	}
	s.running = nil
}

// Start starts a stopped server again on its port; its numbers go on. It does nothing
// if the server runs.
func (s *Server) Start() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return
	}
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", s.addr)
	if err != nil {
		s.t.Fatalf("leaftest: listen: %v", err)
	}
	g, err := grpcd.NewOn(ln, grpcd.Config{Access: leaf.Anyone(s.segment, s.snowflake), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatalf("leaftest: %v", err)
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
