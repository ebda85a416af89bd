package server

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// MariaDB returns a new, empty database on a MariaDB or MySQL server: the one of
// LEAF_TEST_MYSQL, else a private MariaDB. It is dropped at the end of the test.
func MariaDB(t testing.TB) Database {
	t.Helper()
	return shared(t, mariaDB{})
}

// Postgres returns a new, empty database on a PostgreSQL server: the one of
// LEAF_TEST_POSTGRES, else a private one. It is dropped at the end of the test.
func Postgres(t testing.TB) Database {
	t.Helper()
	return shared(t, postgres{})
}

// OwnMariaDB starts a MariaDB server for this test alone, which may kill, stop
// and freeze it.
func OwnMariaDB(t testing.TB) *Instance {
	t.Helper()
	return own(t, mariaDB{})
}

// OwnPostgres starts a PostgreSQL server for this test alone, which may kill,
// stop and freeze it.
func OwnPostgres(t testing.TB) *Instance {
	t.Helper()
	return own(t, postgres{})
}

// Require skips a test that starts servers by other means than this package's
// functions for tests, if one of them is missing; with CI=true it fails it.
func Require(t testing.TB) {
	t.Helper()
	for _, e := range []engine{mariaDB{}, postgres{}} {
		skipIfShort(t, e.name())
		if _, err := e.command(t.Context(), "", 0); err != nil {
			missing(t, err)
		}
	}
	for _, kind := range []registry{zooKeeper{}, etcd{}} {
		if _, err := kind.command(t.Context(), 0, []member{{ports: make([]int, kind.ports())}}); err != nil {
			missing(t, err)
		}
	}
}

func shared(t testing.TB, e engine) Database {
	t.Helper()
	skipIfShort(t, e.name())
	text := os.Getenv(e.variable())
	if text == "" {
		return own(t, e).Database
	}
	server, err := ParseDatabase(text)
	if err != nil {
		t.Fatalf("%s: %v", e.variable(), err)
	}
	d, drop, err := server.fresh(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", e.variable(), err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := drop(ctx); err != nil {
			t.Errorf("%s: %v", e.variable(), err)
		}
	})
	return d
}

func own(t testing.TB, e engine) *Instance {
	t.Helper()
	skipIfShort(t, e.name())
	i, err := start(t.Context(), e, "")
	if errors.Is(err, ErrMissing) {
		missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Errorf("close %s: %v", e.name(), err)
		}
	})
	return i
}

func skipIfShort(t testing.TB, kind string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("-short: needs a real %s server; run make test", kind)
	}
}

// missing skips the test; in CI, where everything must be there, it fails it.
func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("CI=true and %v", err)
	}
	t.Skipf("NOT TESTED: %v", err)
}
