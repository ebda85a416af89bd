package cli_test

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// A user of a database whose password an administrator changes.
type rotated struct {
	create, rotate, drop []string // %[1]s: the user, %[2]s: the database, %[3]s: the password
	sessions             string   // which query lists the statements that end the user's sessions
}

var rotations = map[string]rotated{
	"mysql": {
		create:   []string{"CREATE USER '%[1]s' IDENTIFIED BY '%[3]s'", "GRANT SELECT, INSERT, UPDATE, DELETE ON %[2]s.* TO '%[1]s'"},
		rotate:   []string{"ALTER USER '%[1]s' IDENTIFIED BY '%[3]s'"},
		drop:     []string{"DROP USER '%[1]s'"},
		sessions: "SELECT CONCAT('KILL ', id) FROM information_schema.processlist WHERE user = '%[1]s'",
	},
	"postgres": {
		create:   []string{`CREATE ROLE "%[1]s" LOGIN PASSWORD '%[3]s'`, `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "%[1]s"`},
		rotate:   []string{`ALTER ROLE "%[1]s" PASSWORD '%[3]s'`},
		drop:     []string{`DROP OWNED BY "%[1]s"`, `DROP ROLE "%[1]s"`},
		sessions: "SELECT 'SELECT pg_terminate_backend(' || pid || ')' FROM pg_stat_activity WHERE usename = '%[1]s'",
	},
}

// TestPasswordRotates: an administrator changes the password of the node's user and ends
// its sessions. The node says that it is not let in and what to do; after that, which is
// a new file, it goes on in both modes, under the same worker ID.
func TestPasswordRotates(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) server.Database{"mysql": server.MariaDB, "postgres": server.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, how := database(t), rotations[name]
			leafOK(t, "schema", "apply", "--store", d.URL(), "--data-dir", dataDir(t))
			leafOK(t, "worker", "init", "--store", d.URL(), "--data-dir", dataDir(t))
			leafOK(t, "tag", "create", "leaf-segment-test", "--step", "100", "--fixed-step", "--store", d.URL(), "--data-dir", dataDir(t))
			admin, user := d.Open(t), "u_"+strings.ToLower(rand.Text())[:12]
			run := func(statements []string, password string) {
				for _, s := range statements {
					if strings.Count(s, "%[") > 0 {
						s = strings.NewReplacer("%[1]s", user, "%[2]s", d.Name(), "%[3]s", password).Replace(s)
					}
					if _, err := admin.ExecContext(t.Context(), s); err != nil {
						t.Fatalf("%s: %v", s, err)
					}
				}
			}
			file := filepath.Join(t.TempDir(), "store")
			write := func(password, database string) {
				u, err := url.Parse(d.URL())
				if err != nil {
					t.Fatal(err)
				}
				u.User, u.Path = url.UserPassword(user, password), "/"+database
				if err := os.WriteFile(file, []byte(u.String()+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run(how.create, "first")
			t.Cleanup(func() {
				for _, s := range how.drop {
					_, _ = admin.Exec(strings.ReplaceAll(s, "%[1]s", user))
				}
			})
			write("first", d.Name())
			p := serve(t, dataDir(t), "--store-file", file, "--reload-interval", "50ms")
			number := workerOf(t, p)
			seen := distinct{}
			seen.add(t, p.ids(t, 150))

			run(how.rotate, "second")
			endSessions(t, admin, fmt.Sprintf(how.sessions, user))
			for status := 200; status == 200; {
				var err error
				if status, _, err = httpGet(p.addr, "/api/segment/get/leaf-segment-test?count=100"); err != nil {
					t.Fatal(err)
				}
			}
			p.await(t, `the database does not let user \"`+user+`\" in`)
			p.await(t, "a running node reads a new password from its file")

			write("second", "another")
			p.await(t, `store: database \"another\" instead of \"`+d.Name()+`\"`)
			p.await(t, "restart the node to use them")
			write("second", d.Name())
			p.await(t, "changed_passwords=1")
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				if status, _, err := httpGet(p.addr, "/api/segment/get/leaf-segment-test"); err == nil && status == 200 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("no ID after the new password; log:\n%s", p.log)
				}
			}
			seen.add(t, p.ids(t, 250))
			if now := workerOf(t, p); now != number {
				t.Errorf("worker ID %s, was %s", now, number)
			}
			p.end(t, syscall.SIGTERM)
			for _, secret := range []string{"second@", ":second", "first@", ":first"} {
				if strings.Contains(p.log.String(), secret) {
					t.Errorf("the log shows a password:\n%s", p.log)
				}
			}
		})
	}
}

// workerOf returns the worker ID in a snowflake ID of the node.
func workerOf(t *testing.T, p *process) string {
	t.Helper()
	var id string
	for deadline, status := time.Now().Add(20*time.Second), 0; status != 200; {
		var err error
		if status, id, err = httpGet(p.addr, "/api/snowflake/get/any"); err != nil || time.Now().After(deadline) {
			t.Fatalf("snowflake: %d %s, %v; log:\n%s", status, id, err, p.log)
		}
	}
	for line := range strings.Lines(leafOK(t, "decode", id)) {
		if name, value, _ := strings.Cut(line, " "); strings.HasPrefix(name, "worker") {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("leaf decode %s names no worker", id)
	return ""
}

func endSessions(t *testing.T, admin *sql.DB, query string) {
	t.Helper()
	rows, err := admin.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var statements []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		statements = append(statements, s)
	}
	if err := rows.Err(); err != nil || len(statements) == 0 {
		t.Fatalf("sessions: %d, %v", len(statements), err)
	}
	for _, s := range statements {
		_, _ = admin.ExecContext(t.Context(), s) // a session may have ended by itself
	}
}
