package leaftest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/client/leaftest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIDsBeginAtOne(t *testing.T) {
	t.Parallel()
	s := leaftest.New(t, "order")
	c := s.Client()
	for want := int64(1); want <= 3; want++ {
		if id, err := c.Next(t.Context(), "order"); err != nil || id != want {
			t.Fatalf("Next = %d, %v; want %d", id, err, want)
		}
	}
	s.AddTag("user", 500)
	if r, err := c.NextN(t.Context(), "user", 10); err != nil || len(r) != 1 || r[0] != (leaf.Range{Lo: 500, Hi: 510}) {
		t.Errorf("NextN = %v, %v", r, err)
	}
	if s.Last("order") != 3 || s.Last("user") != 509 || s.Last("none") != 0 {
		t.Errorf("last %d %d %d", s.Last("order"), s.Last("user"), s.Last("none"))
	}
	if _, err := c.Next(t.Context(), "none"); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("unknown tag: %v", err)
	}
	if id, err := c.Snowflake().Next(t.Context(), "any"); err != nil || id != 1 {
		t.Errorf("snowflake: %d, %v", id, err)
	}
}

func TestTroubles(t *testing.T) {
	t.Parallel()
	s := leaftest.New(t, "order")
	c := s.Client()
	s.Fail(leaf.ErrBlocked)
	if _, err := c.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrBlocked) {
		t.Errorf("Fail: %v", err)
	}
	s.Fail(nil)
	s.Delay(10 * time.Second)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Next(short, "order"); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("Delay: %v", err)
	}
	s.Delay(0)
	s.Stop()
	s.Stop()
	short, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Next(short, "order"); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("Stop: %v", err)
	}
	s.Start()
	s.Start()
	long, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := c.Next(long, "order"); err != nil {
		t.Errorf("Start: %v", err)
	}
}

func TestCloseEndsItsClients(t *testing.T) {
	t.Parallel()
	s := leaftest.NewServer("order")
	c := s.Client()
	if id, err := c.Next(t.Context(), "order"); err != nil || id != 1 {
		t.Errorf("Next = %d, %v", id, err)
	}
	s.Close()
	s.Close()
	if _, err := c.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := net.DialTimeout("tcp", s.Addr(), time.Second); err == nil {
		t.Error("the server still listens")
	}
}

func TestNewServerPanics(t *testing.T) {
	t.Parallel()
	s := leaftest.NewServer()
	defer s.Close()
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "leaftest: leaf: bad request: WithRefresh") {
			t.Errorf("panic: %s", said)
		}
	}()
	s.Client(client.WithRefresh(-1))
}
