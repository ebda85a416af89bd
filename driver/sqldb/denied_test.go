package sqldb_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// as returns the URL of a database for another user.
func as(t *testing.T, d server.Database, user, password string) string {
	t.Helper()
	u, err := url.Parse(d.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

var grantStatement = regexp.MustCompile(`GRANT .*$`)

// TestRefusals: what a database refuses to a node, what the node says of it, and what
// the operator types who reads that. Nothing else has to be known.
func TestRefusals(t *testing.T) {
	reserve := func(ctx context.Context, s *sqldb.Store) error { _, err := s.Reserve(ctx, request(7)); return err }
	create := func(ctx context.Context, s *sqldb.Store) error {
		return s.Create(ctx, segment.NewRow{Tag: "b", Start: 1, Step: 7})
	}
	apply := func(ctx context.Context, s *sqldb.Store) error { _, err := s.ApplySchema(ctx); return err }
	record := func(ctx context.Context, s *sqldb.Store) error {
		b := segment.Binding{Store: "default", Rule: "x"}
		c, err := s.UnbindFirst(ctx, rand.Text(), b)
		if c == nil {
			return err
		}
		return errors.Join(err, c.Undo(ctx))
	}
	const tables = "ON ALL TABLES IN SCHEMA public"
	for _, c := range []struct {
		situation string
		database  func(t testing.TB) server.Database
		rights    string // of the user; "" leaves it with none
		empty     bool   // the tables are not there
		call      func(ctx context.Context, s *sqldb.Store) error
		text      string
	}{
		{"mysql: no INSERT", server.MariaDB, "SELECT, UPDATE ON ", false, create, "INSERT command denied"},
		{"mysql: no UPDATE", server.MariaDB, "SELECT, INSERT ON ", false, reserve, "command denied to user"}, // MySQL names the lock that the statement takes first
		{"mysql: no CREATE", server.MariaDB, "SELECT ON ", true, apply, "CREATE command denied"},
		{"mysql: may not record its rule", server.MariaDB, "SELECT ON ", false, record, "command denied"},
		{"postgres: no INSERT", server.Postgres, "SELECT, UPDATE " + tables, false, create, "permission denied for table leaf_alloc"},
		{"postgres: no UPDATE", server.Postgres, "SELECT " + tables, false, reserve, "permission denied for table leaf_alloc"},
		{"postgres: no SELECT", server.Postgres, "", false, reserve, "permission denied for table leaf_alloc"},
		{"postgres: no CREATE", server.Postgres, "", true, apply, "permission denied for schema public"},
		{"postgres: may not record its rule", server.Postgres, "SELECT " + tables, false, record, "permission denied for table leaf_meta"},
	} {
		t.Run(c.situation, func(t *testing.T) {
			t.Parallel()
			d := c.database(t)
			admin := d.Open(t)
			if !c.empty {
				applySchema(t, d.URL())
				execAll(t, admin, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', 1, 7)")
			}
			user := makeUser(t, admin, d)
			if c.rights != "" {
				on := c.rights
				if strings.HasPrefix(c.situation, "mysql") {
					on += d.Name() + ".*"
				}
				execAll(t, admin, "GRANT "+on+" TO "+user)
			}
			s := open(t, as(t, d, strings.Trim(user, `"'`), "secret"))
			err := c.call(t.Context(), s)
			if !errors.Is(err, segment.ErrDenied) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "schema apply") {
				t.Fatalf("%v; want ErrDenied with %q, and no command of ours", err, c.text)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%v shows the password", err)
			}
			for range 2 { // a change of the rule needs rights on two tables
				if errors.Is(err, segment.ErrDenied) {
					execAll(t, admin, grantStatement.FindString(err.Error()))
					err = c.call(t.Context(), s)
				}
			}
			if err != nil {
				t.Errorf("after what the text says: %v", err)
			}
		})
	}
}

// makeUser makes a user without rights, and removes it at the end of the test.
func makeUser(t *testing.T, admin *sql.DB, d server.Database) string {
	t.Helper()
	name := "u_" + strings.ToLower(rand.Text())[:12]
	gone := []string{"DROP USER '" + name + "'"}
	if strings.HasPrefix(d.URL(), "mysql") {
		execAll(t, admin, "CREATE USER '"+name+"' IDENTIFIED BY 'secret'")
		name = "'" + name + "'"
	} else {
		name = `"` + name + `"`
		execAll(t, admin, "CREATE ROLE "+name+" LOGIN PASSWORD 'secret'")
		gone = []string{"DROP OWNED BY " + name, "DROP ROLE " + name}
	}
	t.Cleanup(func() {
		for _, statement := range gone {
			if _, err := admin.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
	return name
}

// TestLogins: a node that may not come in says so, and not that the database is silent.
func TestLogins(t *testing.T) {
	for name, database := range map[string]func(t testing.TB) server.Database{"mysql": server.MariaDB, "postgres": server.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			applySchema(t, d.URL())
			u, err := url.Parse(d.URL())
			if err != nil {
				t.Fatal(err)
			}
			calls := map[string]func(url string) error{
				"store":    func(url string) error { _, err := open(t, url).Rows(t.Context()); return err },
				"registry": func(url string) error { _, err := openRecords(t, url).List(t.Context()); return err },
				"nodes":    func(url string) error { _, err := openDirectory(t, url).List(t.Context()); return err },
			}
			for what, call := range calls {
				for user, wrong := range map[string]string{u.User.Username(): "wrong password", "nobody": "no such user"} {
					err := call(as(t, d, user, "not the password"))
					if !errors.Is(err, segment.ErrDenied) || !strings.Contains(err.Error(), `"`+user+`"`) ||
						strings.Contains(err.Error(), "schema apply") || strings.Contains(err.Error(), "not the password") {
						t.Errorf("%s, %s: %v; want ErrDenied that names the user", what, wrong, err)
					}
				}
				if err := call(d.URL()); err != nil {
					t.Errorf("%s: with the right one: %v", what, err)
				}
			}
		})
	}
}

// TestNoDatabase: a database that is missing is created by its server's administrator,
// and then, not before, the schema can be applied.
func TestNoDatabase(t *testing.T) {
	for name, database := range map[string]func(t testing.TB) server.Database{"mysql": server.MariaDB, "postgres": server.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			admin := d.Open(t)
			missing := d.Named("missing_" + strings.ToLower(rand.Text()))
			s := open(t, strings.Replace(missing.URL(), "sslmode=disable", "", 1)) // by default PostgreSQL is tried with TLS first
			for _, call := range []func() error{
				func() error { _, err := s.ApplySchema(t.Context()); return err },
				func() error { return s.Bind(t.Context(), segment.Binding{Store: "default"}) },
			} {
				err := call()
				if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), `"`+missing.Name()+`" does not exist on the server`) ||
					!strings.Contains(err.Error(), "create the database, then run: leaf schema apply") {
					t.Errorf("%v; want ErrSchema that says what to create first", err)
				}
				if text := strings.ToLower(err.Error()); strings.Contains(text, "tls") || strings.Contains(text, "\n") {
					t.Errorf("%q; want the words of the server alone", err)
				}
			}
			used := open(t, missing.URL()) // of a node that took ranges from it before it was dropped
			if err := used.Expect(strings.Repeat("c", 32)); err != nil {
				t.Fatal(err)
			}
			err := used.Verify(t.Context(), segment.Binding{Store: "default"})
			if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "leaf tag create TAG --start NUMBER") {
				t.Errorf("%v; want ErrSchema that says how to make the tables and tags of a database that is lost", err)
			}
			registry := openRecords(t, missing.URL()) // of a node whose tags are elsewhere
			if err := registry.Expect(strings.Repeat("c", 32)); err != nil {
				t.Fatal(err)
			}
			_, err = registry.List(t.Context())
			if err == nil || !strings.Contains(err.Error(), "on the server") || strings.Contains(err.Error(), "tag create") || strings.Contains(err.Error(), "--data-dir") {
				t.Errorf("%v; want nothing of tags, nor to give the registry the ID of the data directory's cluster", err)
			}
			execAll(t, admin, "CREATE DATABASE "+missing.Name())
			t.Cleanup(func() {
				_ = errors.Join(s.Close(), used.Close())
				_, _ = admin.ExecContext(context.WithoutCancel(t.Context()), "DROP DATABASE "+missing.Name())
			})
			if _, err := s.ApplySchema(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNoServer: an attempt with TLS and one without it that fail alike are one text.
func TestNoServer(t *testing.T) {
	t.Parallel()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := port.Close(); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"mysql", "postgres"} {
		_, err := open(t, scheme+"://u:secret@"+port.Addr().String()+"/x").Lookup(t.Context(), "a")
		if err == nil || strings.Count(err.Error(), "connection refused") != 1 || strings.ContainsAny(err.Error(), "\n\t") {
			t.Errorf("%s: %q; want one line that says once why", scheme, err)
		}
	}
}

// TestStatementPooling: behind a pooler that gives each statement another connection no
// transaction holds. The start and the commands say so, and what to set.
func TestStatementPooling(t *testing.T) {
	t.Parallel()
	d := server.Postgres(t)
	applySchema(t, d.URL())
	pooled := d.Via(startPooler(t, d.Addr(), poolStatements)).URL()
	s, claims := open(t, pooled), openRecords(t, pooled)
	execAll(t, d.Open(t), "DROP TABLE leaf_node")
	for name, call := range map[string]func() error{
		"schema apply": func() error { _, err := s.ApplySchema(t.Context()); return err },
		"start":        func() error { return s.Bind(t.Context(), segment.Binding{Store: "default"}) },
		"worker init": func() error {
			_, err := claims.Namespace(t.Context(), &worker.StoredNamespace{Namespace: worker.Namespace{Name: "leaf"}})
			return err
		},
		"worker list": func() error { _, err := claims.Namespace(t.Context(), nil); return err },
	} {
		if err := call(); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "session or transaction pooling") {
			t.Errorf("%s: %v; want ErrConflict that says what to set", name, err)
		}
	}
}

// startPooler gives each client that connects, and the address of the server behind it, to serve.
func startPooler(t *testing.T, target string, serve func(client net.Conn, target string)) (addr string) {
	t.Helper()
	w, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	go func() {
		for {
			client, err := w.Accept()
			if err != nil {
				return
			}
			go serve(client, target)
		}
	}()
	return w.Addr().String()
}

// poolStatements answers to BEGIN as pgbouncer 1.18 does with pool_mode=statement, and
// passes everything else on.
func poolStatements(client net.Conn, target string) {
	defer client.Close()
	upstream, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", target)
	if err != nil {
		return
	}
	defer upstream.Close()
	go func() {
		defer client.Close()
		pass(client, upstream, func([]byte) bool { return true })
	}()
	pass(upstream, client, func(piece []byte) bool {
		if !strings.Contains(string(piece), "BEGIN") {
			return true
		}
		body := "SFATAL\x00C08P01\x00Mtransaction blocks not allowed in statement pooling mode\x00\x00"
		_, _ = client.Write(append([]byte{'E', 0, 0, 0, byte(len(body) + 4)}, body...))
		return false
	})
}

// pass copies pieces until may is false for one.
func pass(to, from net.Conn, may func(piece []byte) bool) {
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if err != nil || !may(piece[:n]) {
			return
		}
		if _, err := to.Write(piece[:n]); err != nil {
			return
		}
	}
}
