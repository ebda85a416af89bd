package sqldb_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// TestFaultsMySQL is TestFaultsMariaDB on MySQL itself.
func TestFaultsMySQL(t *testing.T) { mysqlFaults(t, named("mysql itself")) }

// TestDirectoryMySQL is TestDirectoryMariaDB on MySQL itself.
func TestDirectoryMySQL(t *testing.T) { serverDirectory(t, named("mysql itself")) }

// TestRegistryMySQL is TestRegistryMariaDB on MySQL itself.
func TestRegistryMySQL(t *testing.T) {
	onlyInMatrix(t, "takes a minute")
	serverRegistry(t, named("mysql itself"), server.OwnMySQL)
}

// TestLastInsertID: what a session or a trigger of MySQL has put into LAST_INSERT_ID is in
// no range.
func TestLastInsertID(t *testing.T) {
	for name, database := range map[string]func(t testing.TB) server.Database{"mariadb": server.MariaDB, "mysql": server.MySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			s := open(t, d.URL())
			applySchema(t, d.URL())
			if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
				t.Fatal(err)
			}
			execAll(t, d.Open(t), "CREATE TABLE audit (id bigint AUTO_INCREMENT PRIMARY KEY, tag varchar(128)) AUTO_INCREMENT = 1000000",
				"CREATE TRIGGER before_update BEFORE UPDATE ON leaf_alloc FOR EACH ROW SET @seen = LAST_INSERT_ID(500000)",
				"CREATE TRIGGER after_update AFTER UPDATE ON leaf_alloc FOR EACH ROW INSERT INTO audit (tag) VALUES (NEW.biz_tag)")
			next := int64(1)
			for i := range 6 {
				step := int64(7)
				if i%2 == 1 {
					step = 0 // by a transaction
				}
				res, err := s.Reserve(t.Context(), request(step))
				if err != nil || res.Range != (leaf.Range{Lo: next, Hi: next + 7}) {
					t.Fatalf("Reserve with step %d = %v, %v; want the range from %d", step, res, err, next)
				}
				next = res.Range.Hi
			}
		})
	}
}

// TestSnapshotIsolation: MariaDB refuses from 11.6 on, by default, to lock a row that
// changed since the transaction began. Claimers that meet so try again.
func TestSnapshotIsolation(t *testing.T) {
	t.Parallel()
	i := server.OwnMariaDB(t)
	db := i.Open(t)
	execAll(t, db, "SET GLOBAL innodb_snapshot_isolation = ON")
	applySchema(t, i.URL())
	claimersAfterDeletion(t, i.URL(), db)
}

// TestCachingSHA2: the first login of an account with caching_sha2_password sends the
// password under the server's key, or by TLS, the second login a hash. A wrong password is
// named as such in both, and a certificate that is not the host's refused before any.
func TestCachingSHA2(t *testing.T) {
	t.Parallel()
	i := server.OwnMySQL(t)
	admin := i.Open(t)
	var data string
	if err := admin.QueryRowContext(t.Context(), "SELECT @@datadir").Scan(&data); err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(data, "ca.pem") // it made one
	for number, tt := range []struct{ name, query string }{
		{"without TLS", ""},
		{"TLS", "tls=skip-verify"},
		{"TLS if the server has it", "tls=preferred"},
		{"TLS, verified", "tls=true&tls-ca=" + authority},
	} {
		t.Run(tt.name, func(t *testing.T) {
			account := fmt.Sprintf("user%d", number)
			execAll(t, admin, "CREATE USER '"+account+"'@'%' IDENTIFIED WITH caching_sha2_password BY 'right'", "GRANT ALL ON leaf.* TO '"+account+"'@'%'")
			as := func(password string) string {
				u, err := url.Parse(i.URL())
				if err != nil {
					t.Fatal(err)
				}
				u.User, u.RawQuery = url.UserPassword(account, password), tt.query
				return u.String()
			}
			for _, password := range []string{"wrong", "right", "right", "wrong"} {
				s, err := sqldb.Open(as(password), sqldb.Config{ConnectTimeout: 10 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.ApplySchema(t.Context())
				_ = s.Close()
				switch {
				case strings.Contains(tt.query, "tls-ca"):
					// The certificate that MySQL makes for itself is for no host.
					if err == nil || !strings.Contains(err.Error(), "certificate") {
						t.Errorf("a certificate without this host: %v; want an error about it", err)
					}
				case password == "wrong" && (err == nil || !strings.Contains(err.Error(), "1045")):
					t.Errorf("a wrong password: %v; want an error with the server's text", err)
				case password == "right" && err != nil:
					t.Errorf("the right password: %v", err)
				}
				if errors.Is(err, segment.ErrSchema) {
					t.Errorf("%v is taken for a fault of the schema", err)
				}
			}
		})
	}
}

// isMariaDB tells MariaDB from MySQL, which make test-matrix gives in its place.
func isMariaDB(t *testing.T, db *sql.DB) bool {
	t.Helper()
	var version string
	if err := db.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return strings.Contains(version, "MariaDB")
}

// onlyInMatrix skips what make test leaves to make test-matrix and make test-long, and says why.
func onlyInMatrix(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("LEAF_TEST_MATRIX") == "" && !long.Asked() {
		t.Skipf("NOT TESTED: %s; run make test-matrix", why)
	}
}
