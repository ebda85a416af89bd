package forward_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/forward"
	"github.com/leaf-idgen/leaf/internal/owner"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// says is a leaf.Issuer whose tags are codes of errors; every other tag has IDs.
type says struct{}

func (says) Next(ctx context.Context, tag string) (int64, error) {
	got, err := says{}.NextN(ctx, tag, 1)
	if err != nil {
		return 0, err
	}
	return got[0].Lo, nil
}

func (says) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	if tag == "hangs" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if class, known := leaf.ClassByCode(tag); known {
		if class.Err == nil {
			return nil, errors.New("the password is 12345")
		}
		return nil, leaf.Later(class.Err, "wait", 3*time.Second)
	}
	if tag == "more" {
		n++
	}
	return []leaf.Range{{Lo: 100, Hi: 100 + int64(n)}}, nil
}

// NextEach is for sequences whose entities are codes of errors; every other one has numbers from 100.
func (says) NextEach(ctx context.Context, _ string, requests []leaf.SequenceRequest) (results []leaf.SequenceResult, _ error) {
	for _, q := range requests {
		lo := max(q.From, 100)
		r := leaf.SequenceResult{Range: leaf.Range{Lo: lo, Hi: lo + int64(q.Count)}}
		if q.Entity == "more" {
			r.Range.Hi++
		} else if _, known := leaf.ClassByCode(q.Entity); known {
			_, r.Err = says{}.Next(ctx, q.Entity)
		}
		results = append(results, r)
	}
	return results, nil
}

// serve returns the address of a node that takes calls from nodes which know the secret.
func serve(t testing.TB) string {
	t.Helper()
	return serveAt(t, "127.0.0.1:0")
}

func serveAt(t testing.TB, address string) string {
	t.Helper()
	address, _ = start(t, address, func(secret string) *leaf.Issuers {
		if secret != "secret" {
			return nil
		}
		return &leaf.Issuers{Segment: says{}, Snowflake: leaf.Disabled("snowflake"), Sequence: says{}}
	})
	return address
}

// start starts a node at an address, which takes calls from other nodes. stop may be called before the end of the test,
// with a context that has ended, too: it cuts the connections then.
func start(t testing.TB, at string, forwarded func(secret string) *leaf.Issuers) (address string, stop func(context.Context)) {
	t.Helper()
	return startWith(t, at, grpcd.Config{Access: leaf.Anyone(nil, nil), Forwarded: forwarded})
}

func startWith(t testing.TB, at string, cfg grpcd.Config) (address string, stop func(context.Context)) {
	t.Helper()
	ln, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	s, err := grpcd.New(ln, cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	var once sync.Once
	stop = func(ctx context.Context) {
		once.Do(func() {
			if err := errors.Join(s.Shutdown(ctx), <-done); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		stop(ctx)
	})
	return ln.Addr().String(), stop
}

func TestPeers(t *testing.T) {
	peers := forward.NewPeers(nil, slog.New(slog.DiscardHandler))
	defer func() { _ = peers.Close() }()
	address := serve(t)
	to := owner.Route{Address: address, Secret: "secret"}
	got, err := peers.NextN(t.Context(), to, "order", 7)
	if err != nil || len(got) != 1 || got[0] != (leaf.Range{Lo: 100, Hi: 107}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, class := range leaf.Classes() {
		_, err := peers.NextN(t.Context(), to, class.Code, 1)
		if err == nil || leaf.ClassOf(err).Code != class.Code {
			t.Errorf("%s: %v, of class %s", class.Code, err, leaf.ClassOf(err).Code)
		}
		if class.Retryable && leaf.RetryAfter(err) != 3*time.Second {
			t.Errorf("%s: retry after %v", class.Code, leaf.RetryAfter(err))
		}
		if err != nil && strings.Contains(err.Error(), "12345") {
			t.Errorf("%s: %v", class.Code, err)
		}
	}
	if _, err := peers.NextN(t.Context(), owner.Route{Address: address, Secret: "another"}, "order", 1); !errors.Is(err, leaf.ErrUnauthenticated) {
		t.Errorf("with a wrong secret: %v", err)
	}
}

// A call without an answer is one that another attempt may help, and its text names no host.
func TestNoAnswer(t *testing.T) {
	peers := forward.NewPeers(nil, slog.New(slog.DiscardHandler))
	defer func() { _ = peers.Close() }()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for name, call := range map[string]func() error{
		"nobody listens": func() error {
			_, err := peers.NextN(t.Context(), owner.Route{Address: closed, Secret: "secret"}, "order", 1)
			return err
		},
		"no answer in time": func() error {
			_, err := peers.NextN(short, owner.Route{Address: serve(t), Secret: "secret"}, "hangs", 1)
			return err
		},
		"no address": func() error {
			_, err := peers.NextN(t.Context(), owner.Route{Address: "no\x00address", Secret: "secret"}, "order", 1)
			return err
		},
	} {
		err := call()
		if !errors.Is(err, leaf.ErrNotReady) || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := peers.Close(); err != nil {
		t.Error(err)
	}
	if _, err := peers.NextN(t.Context(), owner.Route{Address: closed}, "order", 1); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("after Close: %v", err)
	}
}

// An operator learns once why a node cannot be reached, and when it can be again. A caller that leaves is no reason,
// nor is the secret of a session that has ended.
func TestUnreachableNodeIsLogged(t *testing.T) {
	var log bytes.Buffer
	peers := forward.NewPeers(nil, slog.New(slog.NewTextHandler(&log, nil)))
	defer func() { _ = peers.Close() }()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	call := func(ctx context.Context, secret, tag string) {
		_, _ = peers.NextN(ctx, owner.Route{Address: address, Secret: secret}, tag, 1)
	}
	call(short, "secret", "order") // the connection is not accepted
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		call(t.Context(), "secret", "order")
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), address) {
		t.Errorf("logged:\n%s", log.String())
	}
	log.Reset()
	serveAt(t, address)
	peers.Age(time.Minute)
	for err = leaf.ErrNotReady; errors.Is(err, leaf.ErrNotReady) && t.Context().Err() == nil; { // gRPC connects again after a pause
		_, err = peers.NextN(t.Context(), owner.Route{Address: address, Secret: "secret"}, "order", 1)
	}
	peers.Age(10 * time.Second)
	call(t.Context(), "secret", "order")
	call(t.Context(), "another", "order")
	call(t.Context(), "secret", "not_ready")
	if n := strings.Count(log.String(), "\n"); err != nil || n != 1 || !strings.Contains(log.String(), "level=INFO") {
		t.Errorf("%v; logged:\n%s", err, log.String())
	}
}

// Each session of a node has a connection of its own. While a node takes the calls of one and no other connection, as at its
// limit of them, that is logged once, and that it takes all again when no call has failed for a while.
func TestHalfReachableNodeIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	peers := forward.NewPeers(nil, slog.New(slog.NewTextHandler(&log, nil)))
	defer func() { _ = peers.Close() }()
	address, _ := startWith(t, "127.0.0.1:0", grpcd.Config{Access: leaf.Anyone(nil, nil), MaxConns: 1, Forwarded: func(string) *leaf.Issuers {
		return &leaf.Issuers{Segment: says{}, Snowflake: leaf.Disabled("snowflake"), Sequence: says{}}
	}})
	call := func(session string) error {
		_, err := peers.NextN(t.Context(), owner.Route{Address: address, Secret: session}, "order", 1)
		return err
	}
	for range 3 {
		if err := call("first"); err != nil {
			t.Fatal(err)
		}
		if err := call("second"); !errors.Is(err, leaf.ErrNotReady) {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("logged:\n%s", log.String())
	}
	log.Reset()
	peers.Age(10 * time.Second)
	if err := call("first"); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "level=INFO") {
		t.Errorf("logged:\n%s", log.String())
	}
}
