package grpcd_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
	"github.com/leaf-idgen/leaf/leafpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuer is a deterministic leaf.Issuer. What it does depends on the tag: "err.<code>"
// fails with that class, "panic" panics, "block" waits for release or the context,
// "deadline" returns the seconds until the context's deadline, "throttled" says when to
// retry; every other tag counts from 1, and a batch of "gap" has a hole in its middle.
type issuer struct {
	entered chan struct{} // gets one value per call that blocks
	release chan struct{}

	mu    sync.Mutex
	next  map[string]int64
	calls int
}

func newIssuer() *issuer {
	return &issuer{next: map[string]int64{}, entered: make(chan struct{}, 10_000), release: make(chan struct{})}
}

func (i *issuer) Next(ctx context.Context, tag string) (int64, error) {
	ranges, err := i.NextN(ctx, tag, 1)
	if err != nil {
		return 0, err
	}
	return ranges[0].Lo, nil
}

func (i *issuer) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	i.mu.Lock()
	i.calls++
	i.mu.Unlock()
	switch {
	case tag == "panic":
		panic("the issuer is broken")
	case tag == "err.internal":
		return nil, errors.New("the password is 12345")
	case tag == "throttled":
		return nil, leaf.Throttled("the tag's rate", 1500*time.Millisecond)
	case strings.HasPrefix(tag, "err."):
		class, ok := leaf.ClassByCode(strings.TrimPrefix(tag, "err."))
		if !ok {
			panic(tag)
		}
		return nil, fmt.Errorf("issue tag %q: %w", tag, class.Err)
	case tag == "deadline":
		by, ok := ctx.Deadline()
		if !ok {
			return []leaf.Range{{Lo: 0, Hi: 1}}, nil
		}
		left := int64(time.Until(by).Seconds())
		return []leaf.Range{{Lo: left, Hi: left + 1}}, nil
	case tag == "block":
		i.entered <- struct{}{}
		select {
		case <-i.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	lo := i.next[tag] + 1
	i.next[tag] += int64(n)
	if tag == "gap" && n > 1 {
		half := lo + int64(n)/2
		i.next[tag] += 1000
		return []leaf.Range{{Lo: lo, Hi: half}, {Lo: half + 1000, Hi: lo + int64(n) + 1000}}, nil
	}
	return []leaf.Range{{Lo: lo, Hi: lo + int64(n)}}, nil
}

func (i *issuer) called() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls
}

// serves returns a quiet Config that gives seg in segment mode and nothing else.
func serves(seg leaf.Issuer) grpcd.Config {
	return grpcd.Config{Access: leaf.Anyone(seg, nil), Logger: slog.New(slog.DiscardHandler)}
}

// start runs a server on a loopback port until the test ends, and expects both of its
// ends to be clean.
func start(t testing.TB, cfg grpcd.Config) *grpcd.Server {
	t.Helper()
	s, err := grpcd.New(servertest.Listen(t, "127.0.0.1:0"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

// dial connects to s until the test ends.
func dial(t testing.TB, s *grpcd.Server, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	opts = append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, opts...)
	conn, err := grpc.NewClient("passthrough:///"+s.Addr().String(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// client is dial with the stub.
func client(t testing.TB, s *grpcd.Server) leafpb.LeafServiceClient {
	t.Helper()
	return leafpb.NewLeafServiceClient(dial(t, s))
}

// within bounds a call, so that a reply that never comes fails the test.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// stream opens a stream that ends with the test.
func stream(t testing.TB, c leafpb.LeafServiceClient) leafpb.LeafService_StreamClient {
	t.Helper()
	st, err := c.Stream(within(t, 30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// ask sends a request on a stream and returns the answer.
func ask(t testing.TB, st leafpb.LeafService_StreamClient, req *leafpb.StreamRequest) *leafpb.StreamResponse {
	t.Helper()
	if err := st.Send(req); err != nil {
		t.Fatalf("send: %v", err)
	}
	resp, err := st.Recv()
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return resp
}
