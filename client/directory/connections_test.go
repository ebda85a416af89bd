package directory_test

import (
	"context"
	"log/slog"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestConnectionsAreNotKept: between two readings of the list no connection to the
// database stays, so that a hundred clients do not use up those that it allows.
func TestConnectionsAreNotKept(t *testing.T) {
	for _, tt := range []struct {
		name string
		url  func(t *testing.T) string
	}{
		{"mysql", func(t *testing.T) string { return server.MariaDB(t).URL() }},
		{"postgres", func(t *testing.T) string { return server.Postgres(t).URL() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, p := behind(t, withTables(t, tt.url(t)))
			d := open(t, text)
			for range 3 {
				if _, err := d.List(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for deadline := time.Now().Add(10 * time.Second); p.Open() > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%d connections are open", p.Open())
				}
			}
			if p.Accepted() == 0 {
				t.Error("the directory was read past the proxy")
			}
		})
	}
}

// behind returns the URL of the same database behind a proxy.
func behind(t *testing.T, text string) (string, *proxy.Proxy) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.Start(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	u.Host = p.Addr()
	return u.String(), p
}

// TestHundredClientsOfOneDatabase: a hundred clients that read the list from a database,
// with the default settings, have few connections to it at a time.
func TestHundredClientsOfOneDatabase(t *testing.T) {
	text, p := behind(t, withTables(t, server.MariaDB(t).URL()))
	d := open(t, text)
	// For an hour: a client that has not read the entry yet waits for it, on a busy machine more than a minute.
	if err := d.Put(t.Context(), discovery.Node{ID: "n1", Weight: 1, GRPC: "127.0.0.1:1"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	var clients []*client.Client
	for range 100 {
		c, err := client.New(open(t, text), client.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		clients = append(clients, c)
	}
	// They start together, and one that could not read on a busy machine soon tries again. After
	// another reading each they no longer read together.
	for _, c := range clients {
		for len(c.Stats().Nodes) == 0 {
			time.Sleep(time.Millisecond) // between two looks
		}
	}
	const readings = 200
	settled := p.Accepted() + len(clients)
	var samples []int
	for p.Accepted() < settled+readings {
		if p.Accepted() > settled {
			samples = append(samples, p.Open())
		}
		time.Sleep(time.Millisecond) // between two samples
	}
	slices.Sort(samples)
	usual := samples[len(samples)/2] // where the machine stands still, all clients read when it goes on
	t.Logf("of %d connections %d at a time, at most %d", readings, usual, samples[len(samples)-1])
	if usual > 20 { // clients that keep theirs have a hundred
		t.Errorf("%d connections at a time", usual)
	}
}
