package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/internal/server/respd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// answers is an engine that answers by the name of the tag.
type answers struct {
	hang chan struct{} // closed: the tag "hangs" gets its answer
}

func (a answers) Next(_ context.Context, tag string) (int64, error) {
	switch tag {
	case "issued":
		return 42, nil
	case "rejected":
		return 0, leaf.Later(leaf.ErrExhausted, "too many requests wait for IDs", 150*time.Millisecond)
	case "not-ready":
		return 0, leaf.ErrNotReady
	case "exhausted":
		return 0, leaf.ErrExhausted
	case "hangs": // also after its deadline, when the client may see this answer or the deadline
		<-a.hang
		return 0, leaf.ErrNotReady
	}
	return 0, fmt.Errorf("%w %q", leaf.ErrUnknownTag, tag)
}

func (a answers) NextN(ctx context.Context, tag string, _ int) ([]leaf.Range, error) {
	id, err := a.Next(ctx, tag)
	return []leaf.Range{{Lo: id, Hi: id + 1}}, err
}

type serves interface {
	Serve() error
	Shutdown(ctx context.Context) error
	Addr() net.Addr
}

// start serves answers over a protocol. The tag "hangs" gets its answer after a call of release.
func start(t *testing.T, protocol string) (addr string, release func()) {
	t.Helper()
	hang := make(chan struct{})
	release = sync.OnceFunc(func() { close(hang) })
	access := leaf.Anyone(answers{hang}, nil)
	var s serves
	var err error
	switch protocol {
	case "http":
		s, err = httpd.New(servertest.Listen(t, "127.0.0.1:0"), httpd.Config{Access: access})
	case "grpc":
		s, err = grpcd.New(servertest.Listen(t, "127.0.0.1:0"), grpcd.Config{Access: access})
	case "resp":
		s, err = respd.New(servertest.Listen(t, "127.0.0.1:0"), respd.Config{Access: access})
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve() // after Shutdown each protocol has its own idea
	}()
	t.Cleanup(func() {
		release()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-done
	})
	return s.Addr().String(), release
}

// TestLines asks each server over its protocol, again and again on one line: also after a
// late answer the next one is that to its own question.
func TestLines(t *testing.T) {
	t.Parallel()
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			address, release := start(t, p.name)
			dial, disconnect, err := p.connect(address)
			if err != nil {
				t.Fatal(err)
			}
			defer disconnect()
			line := dial()
			defer line.close()
			for _, tt := range []struct {
				tag  string
				want reply
			}{
				{"issued", reply{what: issued, id: 42}},
				{"rejected", reply{what: rejected, hint: 150 * time.Millisecond}},
				{"not-ready", reply{what: failed}},
				{"exhausted", reply{what: failed}},
				{"hangs", reply{what: late}},
				{"issued", reply{what: issued, id: 42}},
				{"unknown", reply{what: broken}},
				{"issued", reply{what: issued, id: 42}},
			} {
				patience := 10 * time.Second
				if tt.tag == "hangs" {
					patience = 50 * time.Millisecond
				}
				got := line.ask(tt.tag, time.Now().Add(patience))
				if tt.tag == "hangs" {
					release() // the answer is on its way while the next question is asked
				}
				if hasText := got.text != ""; hasText != (tt.want.what == failed || tt.want.what == broken) {
					t.Errorf("%s: %q is said", tt.tag, got.text)
				}
				got.text = ""
				if got != tt.want {
					t.Errorf("%s: %+v, want %+v", tt.tag, got, tt.want)
				}
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	for _, p := range protocols {
		dial, disconnect, err := p.connect("127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		line := dial()
		if got := line.ask("issued", time.Now().Add(10*time.Second)); got.what != broken || got.text == "" {
			t.Errorf("%s: %+v", p.name, got)
		}
		line.close()
		disconnect()
	}
}

// TestWaitedInVain: a reply that does not say when to come back was not rejected at once.
func TestWaitedInVain(t *testing.T) {
	t.Parallel()
	got, err := answerRESP(bufio.NewReader(strings.NewReader("-EXHAUSTED leaf: exhausted\r\n")))
	if got.what != failed || err != nil {
		t.Errorf("RESP: %+v, %v", got, err)
	}
	got, err = answerHTTP(bufio.NewReader(strings.NewReader("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 20\r\n\r\n{\"code\":\"exhausted\"}")))
	if got.what != failed || err != nil {
		t.Errorf("HTTP: %+v, %v", got, err)
	}
}
