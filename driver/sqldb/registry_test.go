package sqldb_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// openRecords returns a registry that is closed at the end of the test.
func openRecords(t testing.TB, url string) *sqldb.Records {
	t.Helper()
	r, err := sqldb.OpenRecords(url, sqldb.Config{ConnectTimeout: 10 * time.Second, Lease: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close %s: %v", r.Redacted(), err)
		}
	})
	return r
}

// applySchema makes the tables.
func applySchema(t testing.TB, url string) {
	t.Helper()
	if _, err := open(t, url).ApplySchema(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// registryTarget is a registry whose handles are opened with url, and which db
// reaches past them.
func registryTarget(t *testing.T, url string, db *sql.DB) drivertest.RegistryTarget {
	t.Helper()
	target := tablesTarget("leaf_worker", db)
	target.Open = func(t *testing.T) worker.Registry { return worker.NewPool(openRecords(t, url)) }
	target.Lease = 2 * time.Second
	wipe := target.Wipe
	target.Wipe = func(t *testing.T) {
		t.Helper()
		wipe(t)
		execAll(t, db, "DELETE FROM leaf_worker_peer")
	}
	return target
}

// tablesTarget reaches the tables whose names begin with that of the table of claims.
func tablesTarget(claims string, db *sql.DB) drivertest.RegistryTarget {
	return drivertest.RegistryTarget{
		DeleteClaim: func(t *testing.T, number int64) {
			t.Helper()
			execAll(t, db, fmt.Sprintf("DELETE FROM %s WHERE id = %d", claims, number))
		},
		Overwrite: func(t *testing.T, number int64, nonce string) {
			t.Helper()
			execAll(t, db, fmt.Sprintf("UPDATE %s SET nonce = '%s' WHERE id = %d", claims, strings.ReplaceAll(nonce, "'", "''"), number))
		},
		Garble: func(t *testing.T, number int64) {
			t.Helper()
			execAll(t, db, fmt.Sprintf("UPDATE %s_bound SET bound = -1 WHERE id = %d", claims, number))
		},
		Forget: func(t *testing.T) {
			t.Helper()
			execAll(t, db, "DELETE FROM "+claims+"_bound", "DELETE FROM "+claims)
		},
		Reset: func(t *testing.T, command string) {
			t.Helper()
			execAll(t, db, command)
		},
		Wipe: func(t *testing.T) {
			t.Helper()
			execAll(t, db, "DELETE FROM "+claims+"_namespace", "DELETE FROM "+claims+"_bound", "DELETE FROM "+claims)
		},
	}
}

// serverRegistry runs the suite on a server. The case that pauses it has one for
// itself; all others reach it through a wire that can swallow.
func serverRegistry(t *testing.T, f flavour, own func(t testing.TB) *server.Instance) {
	t.Parallel()
	whole := f.database(t)
	drivertest.RunRegistry(t, func(t *testing.T) drivertest.RegistryTarget {
		if strings.HasSuffix(t.Name(), "/pause") {
			i := own(t)
			applySchema(t, i.URL())
			target := registryTarget(t, i.URL(), i.Open(t))
			target.Pause = func(*testing.T) func() { i.Pause(); return i.Continue }
			return target
		}
		d := f.empty(t, whole)
		applySchema(t, d.URL())
		w := startWire(t, d)
		target := registryTarget(t, d.Via(w.Addr()).URL(), d.Open(t))
		target.Partition = func(*testing.T) func() { w.Freeze(); return w.Heal }
		return target
	})
}

func TestRegistryMariaDB(t *testing.T) { serverRegistry(t, named("mysql"), server.OwnMariaDB) }

func TestRegistryPostgres(t *testing.T) { serverRegistry(t, named("postgres"), server.OwnPostgres) }

// TestRegistrySQLite: a file has two ways to be wiped. Its rows are deleted, or it is
// deleted under the processes that have it open, and made anew.
func TestRegistrySQLite(t *testing.T) {
	t.Run("rows", func(t *testing.T) {
		t.Parallel()
		drivertest.RunRegistry(t, func(t *testing.T) drivertest.RegistryTarget {
			target, _ := fileTarget(t)
			return target
		})
	})
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		drivertest.RunRegistryLosses(t, func(t *testing.T) drivertest.RegistryTarget {
			target, path := fileTarget(t)
			target.Wipe = func(t *testing.T) {
				t.Helper()
				removeFile(t, path)
				applySchema(t, "sqlite:"+path)
			}
			return target
		})
	})
}

// fileTarget is a registry in a new file.
func fileTarget(t *testing.T) (target drivertest.RegistryTarget, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "leaf.db")
	applySchema(t, "sqlite:"+path)
	return registryTarget(t, "sqlite:"+path, raw(t, path)), path
}
