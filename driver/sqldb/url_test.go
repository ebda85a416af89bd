package sqldb_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, url, dialect, redacted string
	}{
		{"mysql", "mysql://root:pw@db:3307/leaf", "mysql", "mysql://root:xxxxx@db:3307/leaf"},
		{"default port", "mysql://root:pw@db/leaf", "mysql", "mysql://root:xxxxx@db:3306/leaf"},
		{"mariadb", "mariadb://root@db/leaf", "mysql", "mariadb://root@db:3306/leaf"},
		{"no user", "mysql://db/leaf", "mysql", "mysql://db:3306/leaf"},
		{"empty password", "mysql://root:@db/leaf", "mysql", "mysql://root:xxxxx@db:3306/leaf"},
		{"IPv6", "mysql://root:pw@[::1]:3307/leaf", "mysql", "mysql://root:xxxxx@[::1]:3307/leaf"},
		{"IPv6, default port", "mysql://root:pw@[2001:db8::1]/leaf", "mysql", "mysql://root:xxxxx@[2001:db8::1]:3306/leaf"},
		{"encoded password", "mysql://a%40b:p%40%2F%3A%23%3F%25@db/leaf", "mysql", "mysql://a%40b:xxxxx@db:3306/leaf"},
		{"socket", "mysql://root:pw@/leaf?socket=/run/my.sock", "mysql", "mysql://root:xxxxx@/leaf?socket=%2Frun%2Fmy.sock"},
		{"tls", "mysql://root:pw@db/leaf?tls=skip-verify", "mysql", "mysql://root:xxxxx@db:3306/leaf?tls=skip-verify"},
		{"postgres", "postgres://u:pw@db/leaf", "postgres", "postgres://u:xxxxx@db:5432/leaf"},
		{"postgresql", "postgresql://u:pw@[::1]/leaf?sslmode=disable", "postgres", "postgresql://u:xxxxx@[::1]:5432/leaf?sslmode=disable"},
		{"postgres socket", "postgres://u@/leaf?host=/run/postgresql", "postgres", "postgres://u@/leaf?host=%2Frun%2Fpostgresql"},
		{"encoded database", "postgres://u:pw@db/le%40af%20x", "postgres", "postgres://u:xxxxx@db:5432/le%40af%20x"},
		{"relative path", "sqlite:data/leaf.db", "sqlite", "sqlite:" + filepath.Join(here, "data/leaf.db")},
		{"absolute path", "sqlite:/data/leaf.db", "sqlite", "sqlite:/data/leaf.db"},
		{"three slashes", "sqlite:///data/leaf.db", "sqlite", "sqlite:/data/leaf.db"},
		{"strange path", "sqlite:/data/50% off #1 数据 +x.db", "sqlite", "sqlite:/data/50% off #1 数据 +x.db"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, c.url)
			if s.Redacted() != c.redacted || s.Dialect() != c.dialect {
				t.Errorf("Open(%q) = %s, %s; want %s, %s", c.url, s.Redacted(), s.Dialect(), c.redacted, c.dialect)
			}
			if again := open(t, s.Redacted()); again.Redacted() != c.redacted {
				t.Errorf("Open(%q) = %s; want the same", c.redacted, again.Redacted())
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, url, part string }{
		{"nothing", "", "store scheme"},
		{"no scheme", "leaf.db", "store scheme"},
		{"unknown scheme", "oracle://u:secret@db/leaf", "store scheme"},
		{"JDBC", "jdbc:mysql://u:secret@db/leaf", "store scheme"},
		{"one slash", "mysql:/u:secret@db/leaf", "store"},
		{"no database", "mysql://u:secret@db", "store database"},
		{"empty database", "mysql://u:secret@db/", "store database"},
		{"two databases", "mysql://u:secret@db/leaf/x", "store database"},
		{"no host", "mysql://u:secret@/leaf", "store host"},
		{"no host", "postgres:///leaf", "store host"},
		{"no IPv6 address", "mysql://u:secret@::/leaf", "store host"},
		{"port 0", "mysql://u:secret@db:0/leaf", "store port"},
		{"port above", "mysql://u:secret@db:65536/leaf", "store port"},
		{"port text", "mysql://u:secret@db:x/leaf", "store"},
		{"unknown parameter", "mysql://u:secret@db/leaf?useSSL=false", "store parameter"},
		{"another dialect's parameter", "mysql://u:secret@db/leaf?sslmode=disable", "store parameter"},
		{"parameter twice", "mysql://u:secret@db/leaf?tls=true&tls=false", "store parameter"},
		{"empty parameter", "mysql://u:secret@db/leaf?tls=", "store parameter"},
		{"bad parameter", "mysql://u:secret@db/leaf?tls=maybe", "store parameter tls"},
		{"no CA file", "mysql://u:secret@db/leaf?tls-ca=/does/not/exist", "store parameter tls-ca"},
		{"bad sslmode", "postgres://u:secret@db/leaf?sslmode=maybe", "store"},
		{"socket and host", "mysql://u:secret@db/leaf?socket=/run/my.sock", "store host"},
		{"relative socket", "mysql://u:secret@/leaf?socket=my.sock", "store parameter socket"},
		{"two sockets", "postgres://u:secret@/leaf?host=/run/a,/run/b", "store parameter host"},
		{"a socket and a host", "postgres://u:secret@/leaf?host=/run/a,db2", "store parameter host"},
		{"password with @ and /", "mysql://u:secret/x@db/leaf", "store"},
		{"password with #", "mysql://u:secret#x@db/leaf", "store"},
		{"password with ?", "mysql://u:1?secret@db/leaf", "store"},
		{"password with %", "mysql://u:%zzsecret@db/leaf", "store"},
		{"fragment", "mysql://u:secret@db/leaf#secret", "store"},
		{"no path", "sqlite:", "store path"},
		{"no path after slashes", "sqlite://", "store path"},
		{"host in a path", "sqlite://host/leaf.db", "store path"},
		{"in memory", "sqlite::memory:", "store path"},
		{"folder", "sqlite:/data/", "store path"},
		{"parameter of a path", "sqlite:/data/leaf.db?mode=ro", "store path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := sqldb.Open(c.url, sqldb.Config{})
			if !errors.Is(err, leaf.ErrBadRequest) || s != nil {
				t.Fatalf("Open(%q) = %v, %v; want ErrBadRequest", c.url, s, err)
			}
			if text := err.Error(); !strings.Contains(text, ": "+c.part+"=") || strings.Contains(text, "secret") {
				t.Errorf("Open(%q): %q; want the part %q, and no password", c.url, text, c.part)
			}
		})
	}
}

func TestConfigRefuses(t *testing.T) {
	t.Parallel()
	for _, cfg := range []sqldb.Config{{ConnectTimeout: -1}, {MaxConns: -1}} {
		if _, err := sqldb.Open("sqlite:leaf.db", cfg); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Open with %+v: %v; want ErrBadRequest", cfg, err)
		}
	}
}

// FuzzOpen checks that no text makes Open panic, that what it accepts comes back
// to the same store through Redacted, and that it shows no password.
func FuzzOpen(f *testing.F) {
	for _, seed := range []string{
		"", ":", "mysql:", "mysql://", "mysql://u:p@h:1/d", "mariadb://[::1]/d?tls=true", "mysql://u:%41@h/d?socket=/s",
		"postgres://u:p@h/d?sslmode=disable&search_path=a", "postgresql:///d?host=/run", "sqlite:x", "sqlite:///x", "sqlite::memory:",
		"mysql://u:p@h/d?tls=%zz", "mysql://[::1%25eth0]:3306/d", "mysql://u@h/%00", "mysql://:p@h/d", "mysql://u:p@@h/d", "mysql://::/0",
	} {
		f.Add(seed, "secret-word")
	}
	f.Fuzz(func(t *testing.T, url, password string) {
		check := func(url string) {
			s, err := sqldb.Open(url, sqldb.Config{})
			if err != nil {
				if !errors.Is(err, leaf.ErrBadRequest) {
					t.Errorf("Open(%q): %v; want ErrBadRequest", url, err)
				}
				return
			}
			defer s.Close()
			again, err := sqldb.Open(s.Redacted(), sqldb.Config{})
			if err != nil {
				t.Fatalf("Open(%q), redacted from %q: %v", s.Redacted(), url, err)
			}
			defer again.Close()
			if again.Redacted() != s.Redacted() {
				t.Errorf("%q is redacted to %q, and that to %q", url, s.Redacted(), again.Redacted())
			}
		}
		check(url)
		own := "leaf: bad request: store= mysql://user:xxxxx@db:3306/leaf cannot be read; percent-encode special characters of user and password"
		if len(password) < 8 || strings.Contains(password, "%") || strings.Contains(own, password) {
			return
		}
		with := "mysql://user:" + password + "@db:3306/leaf"
		check(with)
		s, err := sqldb.Open(with, sqldb.Config{})
		if err != nil {
			if strings.Contains(err.Error(), password) {
				t.Errorf("the password %q is shown: %v", password, err)
			}
			return
		}
		defer s.Close()
		if strings.Contains(s.Redacted(), password) {
			t.Errorf("the password %q is shown: %s", password, s.Redacted())
		}
	})
}
