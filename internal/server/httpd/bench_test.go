package httpd_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/meter"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

// BenchmarkHead is the cost of understanding one request.
func BenchmarkHead(b *testing.B) {
	for _, bb := range []struct{ name, head string }{
		{"wrk", "GET /api/segment/get/leaf-segment-test HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"},
		{"Go", "GET /api/segment/get/leaf-segment-test HTTP/1.1\r\nHost: leaf.example.com:8080\r\nUser-Agent: Go-http-client/1.1\r\nAccept-Encoding: gzip\r\n\r\n"},
		{"token", "GET /api/segment/get/leaf-segment-test HTTP/1.1\r\nHost: leaf.example.com:8080\r\nUser-Agent: Go-http-client/1.1\r\n" +
			"Authorization: Bearer 6f1ed002ab5595859014ebf0951522d9\r\nLeaf-Client: order-service\r\nAccept-Encoding: gzip\r\n\r\n"},
		{"proxy", "GET /api/segment/get/leaf-segment-test HTTP/1.1\r\nHost: leaf.example.com:8080\r\nX-Real-IP: 10.20.30.40\r\n" +
			"X-Forwarded-For: 10.20.30.40, 10.0.0.7\r\nX-Forwarded-Proto: https\r\nConnection: keep-alive\r\nAccept: */*\r\n" +
			"User-Agent: python-requests/2.32.3\r\nAccept-Encoding: gzip, deflate, br\r\n" +
			"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			head := []byte(bb.head)
			if _, _, ok := httpd.Understood(head); !ok {
				b.Fatal("the fast path does not understand it")
			}
			for b.Loop() {
				httpd.Foreign(head)
			}
		})
	}
}

// always is an Opener for everybody.
func always(h httpd.FastHandler) httpd.Opener {
	return func(leaf.Credentials) (httpd.FastHandler, error) { return h, nil }
}

// TestFastPathAllocatesNothing: a thousand more requests on a connection cost no
// allocation, apart from those of other goroutines of the process meanwhile.
func TestFastPathAllocatesNothing(t *testing.T) {
	p := newPipes()
	s, err := httpd.Mount(p, quiet(httpd.Config{}), http.NotFoundHandler(),
		always(func(_ context.Context, _ httpd.Mode, _ string, body []byte) ([]byte, error) {
			return strconv.AppendInt(body, 1<<62, 10), nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	allocs := func(request string, requests int) float64 {
		data := []byte(strings.Repeat(request, requests))
		return testing.AllocsPerRun(10, func() {
			conn := &script{closed: make(chan struct{}), in: data}
			conn.out.Grow(1 << 20) // for all replies, so that its growth counts for neither length
			p.conns <- conn
			<-conn.closed
		})
	}
	for name, request := range map[string]string{
		"without credentials": fastGET("order"),
		"with a token":        with(fastGET("order"), "Authorization: Bearer s3cret", "Leaf-Client: billing"),
		"with an ID":          with(fastGET("order"), "X-Request-Id: abc-1"),
		"with a trace":        with(fastGET("order"), "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
	} {
		if more := allocs(request, 1100) - allocs(request, 100); more > 10 {
			t.Errorf("%s: 1000 requests made %v allocations", name, more)
		}
	}
}

// BenchmarkFastPath is the cost of the fast path without network and Issuer: of a
// request, and of a connection with one request.
func BenchmarkFastPath(b *testing.B) {
	p := newPipes()
	s, err := httpd.Mount(p, quiet(httpd.Config{}), http.NotFoundHandler(),
		always(func(_ context.Context, _ httpd.Mode, _ string, body []byte) ([]byte, error) {
			return strconv.AppendInt(body, 1<<62, 10), nil
		}))
	if err != nil {
		b.Fatal(err)
	}
	run(b, s)
	b.Run("request", func(b *testing.B) {
		b.ReportAllocs()
		p.play(b, b.N)
	})
	b.Run("connection", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.play(b, 1)
		}
	})
}

// BenchmarkCounted is what counting and timing requests adds to the fast path.
func BenchmarkCounted(b *testing.B) {
	inner := leaf.Anyone(largeIDs{}, nil)
	for _, bb := range []struct {
		name   string
		access leaf.Access
	}{{"not", inner}, {"counted", meter.New(inner, "http")}} {
		b.Run(bb.name, func(b *testing.B) {
			p := newPipes()
			s, err := httpd.New(p, quiet(httpd.Config{Access: bb.access}))
			if err != nil {
				b.Fatal(err)
			}
			run(b, s)
			b.ReportAllocs()
			p.play(b, b.N)
		})
	}
}

// largeIDs gives one ID again and again.
type largeIDs struct{}

func (largeIDs) Next(context.Context, string) (int64, error) { return 1 << 62, nil }

func (largeIDs) NextN(context.Context, string, int) ([]leaf.Range, error) { return nil, nil }

// play sends requests over one connection, and fails unless each of them is answered.
func (p *pipes) play(b *testing.B, requests int) {
	b.Helper()
	conn := &feed{text: fastGET("order"), left: requests, closed: make(chan struct{})}
	p.conns <- conn
	<-conn.closed
	if conn.left > 0 || conn.answers != requests {
		b.Fatalf("%d of %d requests were not sent, and %d answered", conn.left, requests, conn.answers)
	}
}

// feed is a connection that sends the same request with each Read, and so gets one answer with each
// Write.
type feed struct {
	net.Conn // nil: what is not below must not be called
	text     string
	left     int
	answers  int // with status 200
	closed   chan struct{}
}

func (f *feed) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	f.left--
	return copy(p, f.text), nil
}

func (f *feed) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("HTTP/1.1 200 OK\r\n")) {
		f.answers++
	}
	return len(p), nil
}

func (f *feed) RemoteAddr() net.Addr             { return nil }
func (f *feed) SetReadDeadline(time.Time) error  { return nil }
func (f *feed) SetWriteDeadline(time.Time) error { return nil }

func (f *feed) Close() error {
	close(f.closed)
	return nil
}
