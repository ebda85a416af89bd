package grpcd_test

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf/leafpb"
)

func TestMessageTooLarge(t *testing.T) {
	c := client(t, start(t, serves(newIssuer())))
	_, err := c.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: strings.Repeat("a", 100_000)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("Next got %v", err)
	}
	st := stream(t, c)
	if err := st.Send(&leafpb.StreamRequest{Tag: strings.Repeat("a", 100_000)}); err != nil {
		t.Fatal(err)
	}
	if resp, err := st.Recv(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("Stream got %v, %v", resp, err)
	}
	if _, err := c.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: "a"}); err != nil {
		t.Errorf("then %v", err)
	}
}

func TestMetadataTooLarge(t *testing.T) {
	s := start(t, serves(newIssuer()))
	// A client of grpc-go knows the limit and refuses by itself what it has not sent in
	// the very first call.
	for _, md := range [][]string{
		{"a", strings.Repeat("a", 20<<10)},
		pairs(2000),
	} {
		c := client(t, s)
		for range 2 {
			ctx := metadata.AppendToOutgoingContext(within(t, 20*time.Second), md...)
			if _, err := c.Next(ctx, &leafpb.NextRequest{Tag: "a"}); err == nil {
				t.Error("20 KiB of metadata were accepted")
			}
		}
	}
	if _, err := client(t, s).Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: "a"}); err != nil {
		t.Errorf("then %v", err)
	}
}

func pairs(n int) (kv []string) {
	for range n {
		kv = append(kv, "leaf-client", "x")
	}
	return kv
}

func TestTooManyConnections(t *testing.T) {
	cfg := serves(newIssuer())
	cfg.MaxConns = 2
	s := start(t, cfg)
	a, b := client(t, s), dialRaw(t, s)
	if _, err := a.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: "a"}); err != nil {
		t.Fatal(err)
	}
	third := dial(t, s)
	if _, err := leafpb.NewLeafServiceClient(third).Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: "a"}); status.Code(err) != codes.Unavailable {
		t.Errorf("the third connection got %v", err)
	}
	third.Close() // or it takes the place that becomes free
	b.Close()
	awaitAnswer(t, client(t, s))
}

// awaitAnswer asks until there is an answer.
func awaitAnswer(t *testing.T, c leafpb.LeafServiceClient) {
	t.Helper()
	for ctx := within(t, 20*time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, err := c.Next(ctx, &leafpb.NextRequest{Tag: "a"})
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("no answer: %v", err)
		}
	}
}

// TestManyStreams: beyond MaxStreams a client waits, and all of 1,000 are served.
func TestManyStreams(t *testing.T) {
	const most, streams = 100, 1000
	cfg := serves(newIssuer())
	cfg.MaxStreams = most
	c := client(t, start(t, cfg))
	var open []leafpb.LeafService_StreamClient
	for range most {
		st := stream(t, c)
		ask(t, st, &leafpb.StreamRequest{Tag: "a"})
		open = append(open, st)
	}
	if _, err := c.Stream(within(t, 100*time.Millisecond)); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("the stream beyond the limit got %v, want it to wait", err)
	}
	for _, st := range open {
		_ = st.CloseSend()
	}
	var wg sync.WaitGroup
	for range streams {
		wg.Go(func() {
			st, err := c.Stream(within(t, 30*time.Second))
			if err != nil {
				t.Error(err)
				return
			}
			if err := st.Send(&leafpb.StreamRequest{Tag: "a"}); err != nil {
				t.Error(err)
			}
			_ = st.CloseSend()
			if resp, err := st.Recv(); err != nil || len(resp.GetRanges()) != 1 {
				t.Errorf("got %v, %v", resp, err)
			}
			if _, err := st.Recv(); !errors.Is(err, io.EOF) {
				t.Errorf("the end is %v", err)
			}
		})
	}
	wg.Wait()
}

func TestSilentConnectionsAreClosed(t *testing.T) {
	cfg := serves(newIssuer())
	cfg.ConnectTimeout = 100 * time.Millisecond
	s := start(t, cfg)
	for _, greeting := range []string{"", "PRI * HTTP/2", "GET / HTTP/1.1\r\nHost: leaf\r\n\r\n"} {
		conn := dialRaw(t, s)
		if _, err := io.WriteString(conn, greeting); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, _ = io.Copy(io.Discard, conn) // SETTINGS, then the end or a reset
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("after %q the connection was open for %v", greeting, d)
		}
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel() // grpc-go waits 5 s for the answer to its goodbye
	cfg := serves(newIssuer())
	cfg.IdleTimeout = 200 * time.Millisecond
	s := start(t, cfg)
	c := client(t, s)
	st := stream(t, c)
	ask(t, st, &leafpb.StreamRequest{Tag: "a"})
	conn := dialRaw(t, s)
	// The preface and empty SETTINGS.
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, _ = io.Copy(io.Discard, conn)
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("an idle connection was open for %v", d)
	}
	if resp := ask(t, st, &leafpb.StreamRequest{Tag: "a"}); resp.GetError() != nil {
		t.Errorf("a stream that rests is not idle, and got %v", resp)
	}
}
