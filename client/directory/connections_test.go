package directory_test

import (
	"net/url"
	"testing"
	"time"

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
			u, err := url.Parse(withTables(t, tt.url(t)))
			if err != nil {
				t.Fatal(err)
			}
			p, err := proxy.Start(u.Host)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			u.Host = p.Addr()
			d := open(t, u.String())
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
