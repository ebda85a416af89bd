package cli_test

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// runLeaf runs a command in this process.
func runLeaf(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), cli.Process{Args: args, Stdout: &out, Stderr: &errs, Environ: []string{"HOME=" + dataDir(t), patient}})
	return code, errs.String()
}

var (
	ourCommand = regexp.MustCompile(`run: leaf ([a-z ]+) --store "([^"]+)"`)
	theirGrant = regexp.MustCompile(`an administrator of the database runs: (GRANT .*)`)
)

// TestTextsAreFollowed: what a command says where the database is not as it must be, and
// what the operator types who reads that and knows no more: a command of ours literally,
// a statement as the administrator. Then the command that failed succeeds.
func TestTextsAreFollowed(t *testing.T) {
	t.Parallel()
	for kind, database := range map[string]func(testing.TB) server.Database{"mysql": server.MariaDB, "postgres": server.Postgres} {
		for _, tt := range []struct {
			name     string
			prepared bool                              // the tables are there
			url      func(d server.Database) string    // that the operator begins with; nil: the database's
			rights   string                            // of a user that is made for it; "": the administrator
			first    func(*sql.DB, *testing.T, string) // what the text tells the administrator beside a GRANT
			command  string
			text     string
		}{
			{name: "wrong password", prepared: true, url: withPassword("wrong"), command: "tag list", text: "correct the user or the password in the URL"},
			{name: "masked password", prepared: true, url: withPassword("xxxxx"), command: "tag list", text: "stands for a password in our texts: write the real one in its place"},
			{name: "no tables", command: "tag list", text: "run: leaf schema apply"},
			{name: "no tables of the registry", command: "worker list", text: "run: leaf schema apply"},
			{name: "no table of the nodes", command: "node list", text: "run: leaf schema apply"},
			{
				name: "no database", command: "tag list", text: "does not exist on the server",
				url: func(d server.Database) string { return d.Named("missing_" + strings.ToLower(rand.Text())).URL() },
				first: func(admin *sql.DB, t *testing.T, name string) {
					if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _, _ = admin.Exec("DROP DATABASE " + name) })
				},
			},
			{name: "no INSERT", prepared: true, rights: "SELECT, UPDATE, DELETE", command: "tag create new", text: "lacks a right"},
			{name: "no UPDATE", prepared: true, rights: "SELECT, INSERT", command: "next a", text: "lacks a right"},
			{name: "no UPDATE for limits", prepared: true, rights: "SELECT", command: "limit set a --rate 5", text: "lacks a right"},
		} {
			t.Run(kind+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				d := database(t)
				admin, right := d.Open(t), d.URL()
				if tt.prepared {
					leafOK(t, "schema", "apply", "--store", right, "--data-dir", dataDir(t))
					leafOK(t, "tag", "create", "a", "--store", right, "--data-dir", dataDir(t))
				}
				typed := right
				if tt.url != nil {
					typed = tt.url(d)
				}
				if tt.rights != "" {
					typed = userWith(t, admin, d, kind, tt.rights)
					right = typed
				}
				dir := dataDir(t)
				code, text := runLeaf(t, append(strings.Fields(tt.command), "--store", typed, "--data-dir", dir)...)
				if code != 4 || !strings.Contains(text, tt.text) {
					t.Fatalf("leaf %s: exit code %d, want 4 and %q; %s", tt.command, code, tt.text, text)
				}
				if tt.first != nil {
					right = typed
					tt.first(admin, t, d.Named(strings.TrimPrefix(mustParse(t, typed).Path, "/")).Name())
				}
				if grant := theirGrant.FindStringSubmatch(text); grant != nil {
					if _, err := admin.ExecContext(t.Context(), grant[1]); err != nil {
						t.Fatalf("%s: %v", grant[1], err)
					}
				} else if (tt.rights != "") != (grant != nil) {
					t.Fatalf("no GRANT in %s", text)
				}
				if run := ourCommand.FindStringSubmatch(text); run != nil {
					password, _ := mustParse(t, right).User.Password()
					store := strings.Replace(run[2], "xxxxx", url.QueryEscape(password), 1)
					leafOK(t, append(strings.Fields(run[1]), "--store", store, "--data-dir", dir)...)
				}
				if code, text := runLeaf(t, append(strings.Fields(tt.command), "--store", right, "--data-dir", dir)...); code != 0 {
					t.Errorf("after what the text says: leaf %s: exit code %d, %s", tt.command, code, text)
				}
			})
		}
	}
}

// TestWaitSaysHowToAvoidIt: a node in a registry that nobody declared new waits, and names
// the command. Who types that before the first node of a registry starts has no wait.
func TestWaitSaysHowToAvoidIt(t *testing.T) {
	t.Parallel()
	store := "sqlite:" + filepath.Join(t.TempDir(), "undeclared.db")
	p := serve(t, dataDir(t), "--store", store)
	p.await(t, "run leaf worker init with the settings of that node")
	if status, body, err := httpGet(p.addr, "/readyz?mode=snowflake"); err != nil || status != 503 || !strings.Contains(body, "run leaf worker init") {
		t.Errorf("/readyz: %d %s, %v", status, body, err)
	}
	p.end(t, syscall.SIGTERM)

	store = "sqlite:" + filepath.Join(t.TempDir(), "declared.db")
	leafOK(t, "schema", "apply", "--store", store)
	leafOK(t, "worker", "init", "--store", store)
	p = serve(t, dataDir(t), "--store", store)
	workerOf(t, p)
	p.end(t, syscall.SIGTERM)
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func withPassword(password string) func(d server.Database) string {
	return func(d server.Database) string {
		u, err := url.Parse(d.URL())
		if err != nil {
			return err.Error()
		}
		u.User = url.UserPassword(u.User.Username(), password)
		return u.String()
	}
}

// userWith makes a user with some rights on all tables and returns the URL for it.
func userWith(t *testing.T, admin *sql.DB, d server.Database, kind, rights string) string {
	t.Helper()
	name, how := "u_"+strings.ToLower(rand.Text())[:12], rotations[kind]
	run := func(statement string) error {
		statement = strings.Replace(statement, "SELECT, INSERT, UPDATE, DELETE", rights, 1)
		_, err := admin.Exec(strings.NewReplacer("%[1]s", name, "%[2]s", d.Name(), "%[3]s", "secret").Replace(statement))
		return err
	}
	for _, statement := range how.create {
		if err := run(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	t.Cleanup(func() {
		for _, statement := range how.drop {
			_ = run(statement)
		}
	})
	u := mustParse(t, d.URL())
	u.User = url.UserPassword(name, "secret")
	return u.String()
}
