package server

import (
	"context"
	"errors"
	"io"
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

// MySQL returns a new, empty database on a MySQL server, never on a MariaDB: the one of
// LEAF_TEST_MYSQL_NEWEST, else a private one. It is dropped at the end of the test.
func MySQL(t testing.TB) Database {
	t.Helper()
	return shared(t, mySQL{})
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

// OwnMySQL starts a MySQL server for this test alone, which may kill, stop and freeze
// it.
func OwnMySQL(t testing.TB) *Instance {
	t.Helper()
	return own(t, mySQL{})
}

// OwnPostgres starts a PostgreSQL server for this test alone, which may kill,
// stop and freeze it.
func OwnPostgres(t testing.TB) *Instance {
	t.Helper()
	return own(t, postgres{})
}

// OwnMariaDBPair starts two MariaDB servers with semi-synchronous replication for
// this test alone.
func OwnMariaDBPair(t testing.TB, o PairOptions) *Pair {
	t.Helper()
	return ownPair(t, mariaDBPair{}, o)
}

// OwnPostgresPair starts two PostgreSQL servers with synchronous replication for
// this test alone.
func OwnPostgresPair(t testing.TB, o PairOptions) *Pair {
	t.Helper()
	return ownPair(t, postgresPair{}, o)
}

func ownPair(t testing.TB, kind pairKind, o PairOptions) *Pair {
	t.Helper()
	return closed(t, kind.name(), func(ctx context.Context) (*Pair, error) { return startPair(ctx, kind, "", o) })
}

// OwnGalera starts a Galera group for this test alone.
func OwnGalera(t testing.TB, nodes int) *Galera {
	t.Helper()
	return closed(t, "galera", func(ctx context.Context) (*Galera, error) { return StartGalera(ctx, "", nodes) })
}

// OwnMySQLGroup starts a group of MySQL servers for this test alone.
func OwnMySQLGroup(t testing.TB, members int) *MySQLGroup {
	t.Helper()
	return closed(t, "mysql-group", func(ctx context.Context) (*MySQLGroup, error) { return StartMySQLGroup(ctx, "", members) })
}

// closed starts a server of this test alone, and closes it at its end.
func closed[S io.Closer](t testing.TB, kind string, start func(context.Context) (S, error)) S {
	t.Helper()
	skipIfShort(t, kind)
	s, err := start(t.Context())
	if errors.Is(err, ErrMissing) || errors.Is(err, ErrNoMount) || errors.Is(err, ErrNoNetwork) {
		missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close %s: %v", kind, err)
		}
	})
	return s
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
		if _, err := kind.command(t.Context(), 0, []member{{addrs: make([]string, kind.ports())}}); err != nil {
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
	return closed(t, e.name(), func(ctx context.Context) (*Instance, error) { return start(ctx, e, "") })
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
