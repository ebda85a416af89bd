package grpcd_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf/internal/server/grpcd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
	"github.com/leaf-idgen/leaf/leafpb"
)

// shut shuts s down, and fails if that takes a suspiciously long time.
func shut(t *testing.T, s *grpcd.Server) {
	t.Helper()
	began := time.Now()
	if err := s.Shutdown(within(t, 20*time.Second)); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("shutdown took %v", d)
	}
}

// TestShutdownEndsStreamsThatRest: their clients see the end, not an error, and go
// elsewhere.
func TestShutdownEndsStreamsThatRest(t *testing.T) {
	s := start(t, serves(newIssuer()))
	conn := dial(t, s)
	used, unused := stream(t, leafpb.NewLeafServiceClient(conn)), stream(t, leafpb.NewLeafServiceClient(conn))
	ask(t, used, &leafpb.StreamRequest{Tag: "a"})
	if err := unused.Send(&leafpb.StreamRequest{Tag: "a"}); err != nil { // or it does not begin
		t.Fatal(err)
	}
	if _, err := unused.Recv(); err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	for _, st := range []leafpb.LeafService_StreamClient{used, unused} {
		if resp, err := st.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, %v; want the end of the stream", resp, err)
		}
	}
	conn.Connect()
	if state := conn.GetState(); state == connectivity.Ready {
		t.Errorf("the connection is %v after the shutdown", state)
	}
}

// TestShutdownAnswersWhatIsUnderWay: a call, and the requests of a stream that were
// received or wait behind one that was.
func TestShutdownAnswersWhatIsUnderWay(t *testing.T) {
	seg := newIssuer()
	s := start(t, serves(seg))
	c := client(t, s)
	called := make(chan error, 1)
	go func() {
		_, err := c.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: "block"})
		called <- err
	}()
	st, resting := stream(t, c), stream(t, c)
	ask(t, resting, &leafpb.StreamRequest{Tag: "d"})
	for _, tag := range []string{"block", "a", "b", "c"} {
		if err := st.Send(&leafpb.StreamRequest{Tag: tag}); err != nil {
			t.Fatal(err)
		}
	}
	<-seg.entered
	<-seg.entered
	done := make(chan struct{})
	go func() {
		defer close(done)
		shut(t, s)
	}()
	// A stream that rests ends. The one under way has not moved for as long.
	if resp, err := resting.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("a stream that rests got %v, %v", resp, err)
	}
	close(seg.release)
	if err := <-called; err != nil {
		t.Errorf("the call under way got %v", err)
	}
	for _, tag := range []string{"block", "a", "b", "c"} {
		if resp, err := st.Recv(); err != nil || resp.GetError() != nil {
			t.Errorf("the request for %s got %v, %v", tag, resp, err)
		}
	}
	if resp, err := st.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("then %v, %v; want the end", resp, err)
	}
	<-done
}

// awaitRefusal waits until s accepts no connections any more.
func awaitRefusal(t *testing.T, s *grpcd.Server) {
	t.Helper()
	for by := time.Now().Add(10 * time.Second); time.Now().Before(by); time.Sleep(time.Millisecond) {
		var d net.Dialer
		conn, err := d.DialContext(t.Context(), "tcp", s.Addr().String())
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Fatal("the server still accepts connections")
}

// TestShutdownEndsABusyStream: it has requests in flight all the time, and ends with a
// retryable error between two answers. What was answered is in order.
func TestShutdownEndsABusyStream(t *testing.T) {
	s := start(t, serves(newIssuer()))
	st := stream(t, client(t, s))
	go func() {
		for st.Send(&leafpb.StreamRequest{Tag: "a"}) == nil {
		}
	}()
	answered := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		for last := int64(0); ; last++ {
			resp, err := st.Recv()
			if err != nil {
				ended <- err
				return
			}
			if got := resp.GetRanges()[0].GetLo(); got != last+1 {
				t.Errorf("%d came after %d", got, last)
			}
			if last == 1000 {
				close(answered)
			}
		}
	}()
	<-answered
	shut(t, s)
	if err := <-ended; !errors.Is(err, io.EOF) {
		checkStatus(t, err, "not_ready")
	}
}

// TestShutdownGivesUp: it cuts what does not end, and says so.
func TestShutdownGivesUp(t *testing.T) {
	seg := newIssuer()
	s, err := grpcd.New(servertest.Listen(t, "127.0.0.1:0"), serves(seg))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	c := client(t, s)
	st := stream(t, c)
	called := make(chan error, 2)
	go func() {
		_, err := c.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: "block"})
		called <- err
	}()
	go func() {
		_ = st.Send(&leafpb.StreamRequest{Tag: "block"})
		_, err := st.Recv()
		called <- err
	}()
	<-seg.entered
	<-seg.entered
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if err := s.Shutdown(ctx); !errors.Is(err, enough) || err.Error() != "shut down gRPC with 1 connections open: enough" {
		t.Errorf("Shutdown = %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve = %v", err)
	}
	for range 2 {
		if err := <-called; status.Code(err) != codes.Unavailable {
			t.Errorf("a call that was cut got %v", err)
		}
	}
}

// TestShutdownDoesNotWaitForTheSilent: clients that connect and say nothing.
func TestShutdownDoesNotWaitForTheSilent(t *testing.T) {
	s := start(t, serves(newIssuer()))
	for _, greeting := range []string{"", "PRI * HTTP/2"} {
		conn := dialRaw(t, s)
		if _, err := io.WriteString(conn, greeting); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	shut(t, s)
	if d := time.Since(began); d > 4*time.Second { // ConnectTimeout is 5 s
		t.Errorf("shutdown took %v", d)
	}
}

func dialRaw(t *testing.T, s *grpcd.Server) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestShutdownWithoutServe(t *testing.T) {
	s, err := grpcd.New(servertest.Listen(t, "127.0.0.1:0"), serves(newIssuer()))
	if err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	if err := s.Serve(); err != nil {
		t.Errorf("Serve after Shutdown = %v", err)
	}
	shut(t, s)
	awaitRefusal(t, s)
}

func TestServeTwice(t *testing.T) {
	s := start(t, serves(newIssuer()))
	ask(t, stream(t, client(t, s)), &leafpb.StreamRequest{Tag: "a"})
	if err := s.Serve(); err == nil {
		t.Error("a second Serve is no error")
	}
}

// broken is a listener that fails.
type broken struct{ net.Listener }

func (broken) Accept() (net.Conn, error) { return nil, errors.New("no more sockets") }

func TestServeReturnsTheListenersError(t *testing.T) {
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := grpcd.New(broken{ln}, serves(newIssuer()))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(); err == nil {
		t.Error("Serve = nil")
	}
	shut(t, s)
}

// TestStartStop starts and stops servers under load, from several goroutines each.
func TestStartStop(t *testing.T) {
	for range 20 {
		s, err := grpcd.New(servertest.Listen(t, "127.0.0.1:0"), serves(newIssuer()))
		if err != nil {
			t.Fatal(err)
		}
		c := client(t, s)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { _ = s.Serve() }) // all but one are refused
		}
		wg.Go(func() {
			st, err := c.Stream(within(t, 20*time.Second))
			if err != nil {
				return
			}
			for st.Send(&leafpb.StreamRequest{Tag: "a"}) == nil {
				if resp, err := st.Recv(); err != nil || resp.GetError() != nil {
					return
				}
			}
		})
		wg.Go(func() { _, _ = c.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: "b"}) })
		for range 3 {
			wg.Go(func() { shut(t, s) })
		}
		wg.Wait()
	}
}
