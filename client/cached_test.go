package client_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/client/check"
	"github.com/leaf-idgen/leaf/client/leaftest"
)

// TestCache: with a cache the nodes are asked for ranges, and Close counts what is left.
func TestCache(t *testing.T) {
	t.Parallel()
	s := leaftest.New(t, "order")
	c := s.Client(client.WithCache(cache.Config{Min: 100, Max: 100}))
	for want := int64(1); want <= 10; want++ {
		if id, err := c.Next(t.Context(), "order"); err != nil || id != want {
			t.Fatalf("Next = %d, %v; want %d", id, err, want)
		}
	}
	if r, err := c.NextN(t.Context(), "order", 5); err != nil || len(r) != 1 || r[0] != (leaf.Range{Lo: 11, Hi: 16}) {
		t.Errorf("NextN = %v, %v", r, err)
	}
	if s.Last("order") != 100 {
		t.Errorf("the node gave %d IDs, want one range of 100", s.Last("order"))
	}
	s.Stop() // what is in memory is served all the same
	if id, err := c.Next(t.Context(), "order"); err != nil || id != 16 {
		t.Errorf("Next without a node = %d, %v", id, err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := c.Stats().Cache; st.Unused != 84 || st.Held != 0 {
		t.Errorf("stats %+v; want 84 unused", st)
	}
	if _, err := c.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("after Close: %v", err)
	}
}

// TestUniquenessCheck: a cluster that repeats an ID, or goes back, is noticed before a
// caller gets the ID.
func TestUniquenessCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		first int64 // of the second range
		want  error
	}{
		{"next", 1011, nil},
		{"a gap", 1500, nil},
		{"repeated", 1010, check.ErrRepeated},
		{"back", 500, check.ErrDecreasing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := leaftest.New(t, "order")
			s.AddTag("order", 1001)
			var log bytes.Buffer
			c := s.Client(client.WithUniquenessCheck(), client.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			if _, err := c.NextN(t.Context(), "order", 10); err != nil {
				t.Fatal(err)
			}
			s.AddTag("order", tt.first)
			_, err := c.NextN(t.Context(), "order", 5)
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if err := c.Close(t.Context()); err != nil { // the log is complete then
				t.Error(err)
			}
			loud := strings.Contains(log.String(), "level=ERROR")
			if lost := c.Stats().Lost; lost != 0 != (tt.want != nil) || lost != 0 && lost != 5 {
				t.Errorf("%d IDs lost", lost)
			}
			if n := c.Stats().Violations; n > 0 != (tt.want != nil) || loud != (tt.want != nil) {
				t.Errorf("%d violations, log %s", n, log.String())
			}
		})
	}
}

// TestUniquenessCheckOfSnowflakeMode: a node that takes another worker ID, because its claim was
// lost or its clock stepped back, gives lower IDs on the same stream. That is no violation;
// an ID that comes twice is one.
func TestUniquenessCheckOfSnowflakeMode(t *testing.T) {
	t.Parallel()
	var issuer counter
	issuer.last.Store(1000)
	c := newClient(t, client.Addresses(startServer(t, &issuer).addr), client.WithUniquenessCheck())
	if _, err := c.Snowflake().NextN(t.Context(), "k", 10); err != nil {
		t.Fatal(err)
	}
	issuer.last.Store(500)
	if _, err := c.Snowflake().NextN(t.Context(), "k", 10); err != nil {
		t.Errorf("IDs of another worker ID: %v", err)
	}
	issuer.last.Store(1005)
	if _, err := c.Snowflake().NextN(t.Context(), "k", 10); !errors.Is(err, check.ErrRepeated) {
		t.Errorf("repeated IDs: %v", err)
	}
	if n := c.Stats().Violations; n != 1 {
		t.Errorf("%d violations, want 1", n)
	}
}

func TestCacheConfigIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := client.New(client.Addresses("h:1"), client.WithCache(cache.Config{Max: -1})); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("error %v", err)
	}
}
