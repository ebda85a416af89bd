package app_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// clusterWithWorker returns the configuration of a node, in a cluster of its own, that has issued with the worker ID 5 and remembers
// its cluster.
func clusterWithWorker(t *testing.T, makeStore func(t *testing.T) config.Config, address string, segmentMode bool) config.Config {
	t.Helper()
	c := makeStore(t)
	c.Segment.Enable, c.StorePrivate = segmentMode, false
	c.Snowflake.Address, c.Snowflake.Force, c.Snowflake.WorkerRange = address, true, "5-5"
	atRegistry(t, c, func(b manage.Backend) error { return manage.Tell(t.Context(), b, manage.InitWorkers{}) })
	a, stop := start(t, c)
	ids(t, a, 1)
	until(t, "the node remembers its cluster", func() bool {
		content, err := os.ReadFile(filepath.Join(c.DataDir, "cluster"))
		return err == nil && strings.Contains(string(content), "default")
	})
	stop()
	return c
}

// TestModeIsSwitchedOnAnotherRegistry is rule V across a change of the modes: a node has its worker IDs from its store. It is
// started again with segment mode switched off, or on, while the name of the store leads to the store of another cluster, which
// gives the numbers that the neighbours of the node have.
func TestModeIsSwitchedOnAnotherRegistry(t *testing.T) {
	t.Parallel()
	for kind, makeStore := range map[string]func(t *testing.T) config.Config{
		"sql": inStoreFile, "etcd": inEtcd,
	} {
		for change, modes := range map[string]struct{ before, after bool }{
			"segment mode is switched off": {true, false}, "segment mode is switched on": {false, true}, "it stays off": {false, false},
		} {
			t.Run(kind+", "+change, func(t *testing.T) {
				t.Parallel()
				ours := clusterWithWorker(t, makeStore, "127.0.0.1:7001", modes.before)
				theirs := clusterWithWorker(t, makeStore, "127.0.0.1:7002", true)
				misled := ours
				misled.Segment.Enable, misled.Stores = modes.after, theirs.Stores
				if misled.Segment.Enable {
					a, err := app.New(misled, app.Options{})
					if err != nil {
						t.Fatal(err)
					}
					other := a.Start(t.Context())
					if _, ok := errors.AsType[*segment.ClusterError](other); !ok {
						t.Errorf("start with the store of others: %v; want a ClusterError", other)
					}
					if err := a.Stop(t.Context()); err != nil {
						t.Error(err)
					}
				} else {
					a, stop := start(t, misled)
					until(t, "an alarm names the other cluster", func() bool {
						_, body := get(t, a, "/readyz?mode=snowflake")
						return strings.Contains(body, "another cluster")
					})
					if status, body := get(t, a, "/api/snowflake/get/x"); status != http.StatusServiceUnavailable {
						t.Errorf("with the registry of others: %d %s", status, body)
					}
					stop()
				}
				atRegistry(t, theirs, func(b manage.Backend) error {
					all, err := manage.Ask(t.Context(), b, manage.ListWorkers{})
					for _, w := range all.Workers {
						if w.Address == ours.Snowflake.Address {
							t.Errorf("the node has claimed %+v", w)
						}
					}
					return err
				})
				ours.Segment.Enable = modes.after
				a, _ := start(t, ours)
				ids(t, a, 1)
			})
		}
	}
}

// restoredRegistry is what the alarm says to do after a backup was loaded into a new database.
var restoredRegistry = regexp.MustCompile(`if a backup of cluster \w+ was loaded into a new database, stop all nodes and Java servers, run in it: (UPDATE leaf_meta SET value = '\w+' WHERE name = 'cluster_id'); (DELETE FROM leaf_worker_namespace), and start the nodes as docs/OPERATIONS\.md#backup-and-restore-drill says`)

// TestRegistryInANewDatabaseAsTheTextSays: a backup with the worker IDs and without leaf_meta is loaded into a new database, which
// has an ID of its own. Neighbours may still issue with the numbers that they took in the old one. A node with snowflake mode
// alone says what to do, and then waits until they have ended.
func TestRegistryInANewDatabaseAsTheTextSays(t *testing.T) {
	t.Parallel()
	restored := clusterWithWorker(t, inStoreFile, "127.0.0.1:7001", false)
	restored.Stores = clusterWithWorker(t, inStoreFile, "127.0.0.1:7002", false).Stores
	a, stop := start(t, restored)
	var says []string
	until(t, "an alarm says what to do", func() bool {
		_, body := get(t, a, "/readyz?mode=snowflake")
		says = restoredRegistry.FindStringSubmatch(body)
		return says != nil
	})
	stop()
	db := openFile(t, strings.TrimPrefix(restored.Stores[0], "sqlite:"))
	execute(t, db, says[1])
	execute(t, db, says[2])
	a, _ = start(t, restored)
	until(t, "the node waits", func() bool {
		_, body := get(t, a, "/readyz?mode=snowflake")
		return strings.Contains(body, "is waiting")
	})
	if status, body := get(t, a, "/api/snowflake/get/x"); status != http.StatusServiceUnavailable {
		t.Errorf("beside neighbours that may still issue: %d %s", status, body)
	}
}

// TestRegistryIsLeftOut is rule V: a node has its worker IDs from a registry of its own, and is started without the setting that
// names it, as from a unit that lost its environment. By default the worker IDs come from the store then, or from the embedded
// database, which give the numbers of the neighbours that stayed. When the file registry is removed, the node moves there.
func TestRegistryIsLeftOut(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(t *testing.T) config.Config{
		"the embedded database": func(t *testing.T) config.Config { t.Helper(); return embedded(shortDir(t)) },
		"a database":            inStoreFile,
		"a database that has no ID": func(t *testing.T) config.Config {
			t.Helper()
			d := server.MariaDB(t)
			c := embedded(shortDir(t))
			c.Stores = []string{d.URL()}
			makeTables(t, c.Stores[0])
			execute(t, d.Open(t), "DROP TABLE leaf_meta")
			return c
		},
		"etcd": inEtcd,
	} {
		for modes, segment := range map[string]bool{"both modes": true, "snowflake mode alone": false} {
			t.Run(name+", "+modes, func(t *testing.T) {
				t.Parallel()
				c := store(t)
				c.Segment.Enable, c.Snowflake.Force = segment, true
				c.Snowflake.Registry, c.Snowflake.Addresses = "sql", []string{"sqlite:" + filepath.Join(t.TempDir(), "registry.db")}
				makeTables(t, c.Snowflake.Addresses[0])
				bare := c
				bare.Snowflake.Registry, bare.Snowflake.Addresses = config.RegistryAuto, nil
				for _, c := range []config.Config{c, bare} {
					if len(c.Stores) > 0 || c.Snowflake.Registry != config.RegistryAuto {
						atRegistry(t, c, func(b manage.Backend) error { return manage.Tell(t.Context(), b, manage.InitWorkers{}) })
					}
				}
				a, stop := start(t, c)
				ids(t, a, 1)
				stop()
				if !segment && len(c.Stores) > 0 { // as a version before has left it
					if err := os.WriteFile(filepath.Join(c.DataDir, "cluster"), []byte(`{"default":""}`), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				a, stop = start(t, bare)
				if status, body := get(t, a, "/api/snowflake/get/x"); status != http.StatusServiceUnavailable {
					t.Errorf("with the worker IDs of the store: %d %s", status, body)
				}
				until(t, "an alarm names the other registry", func() bool {
					_, body := get(t, a, "/readyz?mode=snowflake")
					return strings.Contains(body, "another registry of worker IDs answers")
				})
				stop()
				a, stop = start(t, c)
				ids(t, a, 1)
				stop()
				if len(c.Stores) == 0 {
					return // the numbers of the embedded database wait
				}
				if err := os.Remove(filepath.Join(c.DataDir, "registry")); err != nil {
					t.Fatal(err)
				}
				a, _ = start(t, bare)
				until(t, "the node has a worker ID of the store", func() bool {
					status, _ := get(t, a, "/api/snowflake/get/x")
					return status == http.StatusOK
				})
			})
		}
	}
}
