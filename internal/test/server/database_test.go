package server_test

import (
	"context"
	"database/sql"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

func TestParseDatabase(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, url, dsn, database, addr string }{
		{"mysql", "mysql://leaf:s3cret@127.0.0.1:3306/ids", "leaf:s3cret@tcp(127.0.0.1:3306)/ids", "ids", "127.0.0.1:3306"},
		{"no password", "mysql://root@localhost:3306/ids", "root@tcp(localhost:3306)/ids", "ids", "localhost:3306"},
		{"no name", "mysql://root@localhost:3306/", "root@tcp(localhost:3306)/", "", "localhost:3306"},
		{"IPv6", "mysql://root@[::1]:3306/ids", "root@tcp([::1]:3306)/ids", "ids", "[::1]:3306"},
		{"option", "mysql://root@h:3306/ids?tls=skip-verify", "root@tcp(h:3306)/ids?tls=skip-verify", "ids", "h:3306"},
		{"postgres", "postgres://u:s3cret@h:5432/ids?sslmode=disable", "postgres://u:s3cret@h:5432/ids?sslmode=disable", "ids", "h:5432"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, err := server.ParseDatabase(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			dsn, err := d.DSN()
			if err != nil || dsn != tt.dsn {
				t.Errorf("DSN() = %q, %v; want %q", dsn, err, tt.dsn)
			}
			if d.Name() != tt.database || d.Addr() != tt.addr || d.URL() != tt.url {
				t.Errorf("Name, Addr, URL = %q, %q, %q", d.Name(), d.Addr(), d.URL())
			}
			if strings.Contains(d.Redacted(), "s3cret") {
				t.Errorf("Redacted() = %q shows the password", d.Redacted())
			}
			if via := d.Via("127.0.0.1:9"); via.Addr() != "127.0.0.1:9" || via.Name() != tt.database || d.Addr() != tt.addr {
				t.Errorf("Via: %q; the original is now %q", via.URL(), d.URL())
			}
		})
	}
}

func TestParseDatabaseRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "root:s3cret@tcp(localhost)/leaf", "oracle://u:s3cret@h:1/x", "mysql://u:s3cret@h/x", "mysql://u:s3cret@h:port/x"} {
		_, err := server.ParseDatabase(text)
		if err == nil {
			t.Errorf("ParseDatabase(%q) succeeded", text)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("ParseDatabase(%q): the error shows the password: %v", text, err)
		}
	}
}

// TestDatabasesAreFreshAndDropped runs on one server of its own, which it passes
// on in the environment as withservers does.
func TestDatabasesAreFreshAndDropped(t *testing.T) {
	for _, tt := range []struct {
		kind, variable string
		own            func(testing.TB) *server.Instance
		fresh          func(testing.TB) server.Database
		count          string
	}{
		{"mariadb", "LEAF_TEST_MYSQL", server.OwnMariaDB, server.MariaDB, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE 'leaf_test_%'"},
		{"postgres", "LEAF_TEST_POSTGRES", server.OwnPostgres, server.Postgres, "SELECT COUNT(*) FROM pg_database WHERE datname LIKE 'leaf_test_%'"},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			i := tt.own(t)
			t.Setenv(tt.variable, i.URL())
			count := func() (n int) {
				if err := i.Open(t).QueryRowContext(t.Context(), tt.count).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			t.Run("two tests", func(t *testing.T) {
				var open *sql.Tx
				t.Cleanup(func() { _ = open.Rollback() }) // after the databases were dropped
				a, b := tt.fresh(t), tt.fresh(t)
				if a.Addr() != i.Addr() || a.Name() == b.Name() {
					t.Errorf("%s and %s: want two databases on %s", a.Redacted(), b.Redacted(), i.Addr())
				}
				mustExec(t, a.Open(t), "CREATE TABLE same (v int)")
				mustExec(t, b.Open(t), "CREATE TABLE same (v int)")
				if n := count(); n != 2 {
					t.Errorf("%d databases, want 2", n)
				}
				// A session in an open transaction must not keep the database alive.
				var err error
				if open, err = a.Open(t).BeginTx(context.WithoutCancel(t.Context()), nil); err != nil {
					t.Fatal(err)
				}
				if _, err := open.ExecContext(t.Context(), "INSERT INTO same VALUES (1)"); err != nil {
					t.Fatal(err)
				}
			})
			if n := count(); n != 0 {
				t.Errorf("%d databases left, want 0", n)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for kind, d := range map[string]func(testing.TB) server.Database{"MariaDB": server.MariaDB, "PostgreSQL": server.Postgres} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			version, err := d(t).Version(t.Context())
			if err != nil || !regexp.MustCompile(`^\d+\.\d+`).MatchString(version) {
				t.Errorf("Version() = %q, %v; want a number", version, err)
			}
		})
	}
}
