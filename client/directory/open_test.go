package directory_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/directory"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, url string) discovery.Directory {
	t.Helper()
	d, err := directory.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestOpen: what a node puts at a URL a client finds at the same.
func TestOpen(t *testing.T) {
	for _, tt := range []struct {
		name string
		url  func(t *testing.T) string
	}{
		{"sqlite", func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "leaf.db") }},
		{"mysql", func(t *testing.T) string { return withTables(t, server.MariaDB(t).URL()) }},
		{"postgres", func(t *testing.T) string { return withTables(t, server.Postgres(t).URL()) }},
		{"etcd", func(t *testing.T) string {
			ns := server.Etcd(t)
			return fmt.Sprintf("etcd://%s/%s", hosts(ns.Servers), strings.ReplaceAll(ns.Root, "/", "-"))
		}},
		{"zookeeper", func(t *testing.T) string {
			ns := server.ZooKeeper(t)
			return fmt.Sprintf("zookeeper://%s%s/prod", hosts(ns.Servers), ns.Root)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := tt.url(t)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			n := discovery.Node{ID: "n1", Zone: "a", Weight: 1, HTTP: "10.0.0.1:8080"}
			if err := open(t, u).Put(ctx, n, time.Minute); err != nil {
				t.Fatal(err)
			}
			if got, err := open(t, u).List(ctx); err != nil || len(got) != 1 || got[0] != n {
				t.Errorf("List = %+v, %v; want %+v", got, err, n)
			}
		})
	}
}

// TestOpenFarAway: a database that is far away, or on a busy machine, takes long to greet.
func TestOpenFarAway(t *testing.T) {
	t.Parallel()
	u, p := behind(t, withTables(t, server.Postgres(t).URL()))
	p.Delay(150 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if list, err := open(t, u).List(ctx); err != nil || len(list) > 0 {
		t.Errorf("List = %v, %v; want an empty one", list, err)
	}
}

// withTables makes the tables, as leaf schema apply does.
func withTables(t *testing.T, url string) string {
	t.Helper()
	s, err := sqldb.Open(url, sqldb.Config{ConnectTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.ApplySchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	return url
}

// hosts are servers as a URL has them.
func hosts(servers []string) string {
	var list []string
	for _, s := range servers {
		if u, err := url.Parse(s); err == nil && u.Host != "" {
			s = u.Host
		}
		list = append(list, s)
	}
	return strings.Join(list, ",")
}

func TestOpenRefuses(t *testing.T) {
	for _, text := range []string{
		"", "store", "redis://u:hunter2@a:1/n", "mysql://u:hunter2@a:1", "postgres://u:hunter2@/db", "sqlite:", "etcd://u:hunter2@a/n", "etcds://a:1", "zookeeper://u:hunter2@a:1/n",
	} {
		d, err := directory.Open(text)
		if d != nil || !errors.Is(err, leaf.ErrBadRequest) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open(%q) = %v, %v; want ErrBadRequest without the password", text, d, err)
		}
	}
}

// TestOpenKnowsEveryDatabase: every URL that a node accepts as a store opens a directory.
func TestOpenKnowsEveryDatabase(t *testing.T) {
	for _, prefix := range sqldb.Prefixes() {
		rest := "u:p@127.0.0.1:1/leaf"
		if !strings.HasSuffix(prefix, "//") {
			rest = filepath.Join(t.TempDir(), "leaf.db")
		}
		open(t, prefix+rest) // nothing connects before the list is read
	}
}
