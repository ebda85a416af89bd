package app_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// TestRegistryOfOthers is rule V: the address of the registry of worker IDs leads to that of other nodes, which gives the numbers
// that the node's neighbours have. The node claims nothing there, and goes on when the address is right again.
func TestRegistryOfOthers(t *testing.T) {
	t.Parallel()
	coordinator := func(servers func(t testing.TB) server.Namespace) func(t *testing.T, name string, c *config.Config) {
		return func(t *testing.T, name string, c *config.Config) {
			t.Helper()
			at := servers(t)
			c.Snowflake.Addresses, c.Snowflake.Name = at.Servers, strings.Trim(strings.ReplaceAll(at.Root, "/", "-"), "-")+name
		}
	}
	database := func(t *testing.T, name string) []string {
		t.Helper()
		c := config.Default()
		c.Stores = []string{"sqlite:" + filepath.Join(t.TempDir(), name)}
		if _, err := app.ApplySchema(t.Context(), c, app.Options{}, nil); err != nil {
			t.Fatal(err)
		}
		return c.Stores
	}
	for kind, place := range map[string]func(t *testing.T, name string, c *config.Config){
		"etcd":              coordinator(server.Etcd),
		"zookeeper":         coordinator(server.ZooKeeper),
		"zookeeper-recycle": coordinator(server.ZooKeeper),
		"sql": func(t *testing.T, name string, c *config.Config) {
			t.Helper()
			c.Snowflake.Addresses = database(t, name)
		},
		"auto": func(t *testing.T, name string, c *config.Config) { // in the store, which has a cluster
			t.Helper()
			c.Stores, c.StorePrivate = database(t, name), false
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			registry := func(name string) config.Config {
				c := embedded(shortDir(t))
				c.Segment.Enable = false
				c.Snowflake.Registry = kind
				place(t, name, &c)
				c.Snowflake.Address, c.Snowflake.Force = "127.0.0.1:7002", true
				atRegistry(t, c, func(b manage.Backend) error {
					_, err := manage.Ask(t.Context(), b, manage.InitWorkers{})
					return err
				})
				return c
			}
			ours, theirs := registry("ours"), registry("theirs")
			ours.Snowflake.Address = "127.0.0.1:7001"
			for _, c := range []config.Config{ours, theirs} {
				a, stop := start(t, c)
				ids(t, a, 1)
				until(t, "the node keeps the ID of its cluster", func() bool {
					content, err := os.ReadFile(filepath.Join(c.DataDir, "cluster"))
					return kind != "auto" || err == nil && len(content) > len(segment.NewClusterID())
				})
				stop()
			}
			says := "another registry of worker IDs answers"
			if kind == "auto" {
				says = "the database is another cluster's"
			}
			misled := ours
			misled.Snowflake.Name, misled.Snowflake.Addresses, misled.Stores = theirs.Snowflake.Name, theirs.Snowflake.Addresses, theirs.Stores
			a, stop := start(t, misled)
			until(t, "an alarm names the other registry", func() bool {
				_, body := get(t, a, "/readyz?mode=snowflake")
				return strings.Contains(body, says)
			})
			if status, body := get(t, a, "/api/snowflake/get/x"); status != 503 {
				t.Errorf("with the registry of others: %d %s", status, body)
			}
			refused := func(who string, direct bool) {
				t.Helper()
				b, done, err := app.Open(t.Context(), misled, app.Options{}, direct, app.Registry)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = done() }()
				_, list := manage.Ask(t.Context(), b, manage.ListWorkers{})
				_, released := manage.Ask(t.Context(), b, manage.ReleaseWorker{})
				_, declared := manage.Ask(t.Context(), b, manage.InitWorkers{})
				for command, err := range map[string]error{"list": list, "release": released, "init": declared} {
					if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), says) {
						t.Errorf("leaf worker %s by %s, with the registry of others: %v", command, who, err)
					}
				}
			}
			refused("the node", false)
			stop()
			refused("the command alone", true)
			atRegistry(t, theirs, func(b manage.Backend) error {
				all, err := manage.Ask(t.Context(), b, manage.ListWorkers{})
				for _, w := range all.Workers {
					if w.Address == "127.0.0.1:7001" {
						t.Errorf("the node has claimed %+v", w)
					}
				}
				return err
			})
			a, _ = start(t, ours)
			ids(t, a, 1)
		})
	}
}

// identities is a registry with an ID of its own.
type identities struct {
	worker.Registry

	id     string
	floor  int64
	lost   error
	claims int
	asked  int    // Peers
	moves  string // its ID after the next claim; "": the same
	beside error  // it lies in the store of another cluster
	other  string // the ID of the server that the next calls but Identify come to; "": the same server
	own    string // that Expect said
}

func (r *identities) Expect(id string) error {
	r.own = id
	return nil
}

// reached returns what a driver does of a call that came to another server.
func (r *identities) reached() error {
	if r.own != "" && r.other != "" {
		return fmt.Errorf("namespace: %w", &segment.ClusterError{Own: r.own, Found: r.other})
	}
	return nil
}

func (r *identities) Init(context.Context, worker.Namespace) error { return r.reached() }

func (r *identities) Peers(context.Context) ([]worker.Peer, error) {
	r.asked++
	return nil, r.reached()
}

func (r *identities) Identify(_ context.Context, id string) (string, error) {
	if r.beside != nil {
		return "", r.beside
	}
	if r.id == "" {
		r.id = id
	}
	return r.id, nil
}

func (r *identities) Claim(context.Context, worker.Request) (worker.Record, error) {
	if err := r.reached(); err != nil {
		return worker.Record{}, err
	}
	r.claims++
	r.id, r.moves = cmp.Or(r.moves, r.id), ""
	return worker.Record{Number: 7, Floor: r.floor}, nil
}

func (r *identities) Renew(_ context.Context, own worker.Record, _ int64) (worker.Record, error) {
	return own, cmp.Or(r.reached(), r.lost)
}

// TestRegistryKeepsItsID: which node makes the ID of a registry, which one writes it back, and what a node hears of its claim
// when another registry answers.
func TestRegistryKeepsItsID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		dir, err := datadir.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r := &identities{floor: time.Now().Add(10 * time.Minute).UnixMilli()}
		open := func() worker.Registry {
			known, err := app.KnownRegistry(r, dir, false)
			if err != nil {
				t.Fatal(err)
			}
			return known
		}
		known := open()
		claim := func() (worker.Record, error) { return known.Claim(t.Context(), worker.Request{}) }
		renew := func(own worker.Record) error {
			own.Floor = max(own.Floor, time.Now().Add(3*time.Second).UnixMilli()) // as package worker does: the t of its file
			_, err := known.Renew(t.Context(), own, 0)
			return err
		}
		peers := func() error { _, err := known.Peers(t.Context()); return err }
		isOthers := func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "another registry of worker IDs answers") &&
				strings.Contains(err.Error(), "and Java servers of the other one for good") && !errors.Is(err, worker.ErrLost)
		}
		own, err := claim()
		if err != nil || r.id != "" {
			t.Fatalf("a registry whose numbers wait: %v, ID %q; the nodes of a registry that was wiped know its ID", err, r.id)
		}
		time.Sleep(5 * time.Minute)
		if err := renew(own); err != nil || r.id != "" {
			t.Fatalf("renewed while the numbers wait: %v, ID %q", err, r.id)
		}
		time.Sleep(5 * time.Minute)
		if err := peers(); err != nil || r.id != "" { // which the node asks for every minute, too
			t.Fatalf("the peers: %v, ID %q", err, r.id)
		}
		if err := renew(own); err != nil || r.id == "" {
			t.Fatalf("renewed when the numbers can be used: %v, ID %q", err, r.id)
		}
		ours := r.id
		r.id = "theirs" // a copy, with the records of this one: a renewal there keeps no node from the number here
		if err := renew(own); err == nil || errors.Is(err, worker.ErrLost) {
			t.Errorf("a renewal in a copy with another ID: %v; want an error that is not ErrLost", err)
		}
		r.id = ours

		for _, known = range []worker.Registry{known, open()} { // the node itself, and after a restart
			r.id = ""
			if err := renew(own); err != nil || r.id != ours {
				t.Errorf("a registry that was wiped: %v, ID %q; want %q", err, r.id, ours)
			}
			claims := r.claims
			r.id = ""
			if err := known.Init(t.Context(), worker.Namespace{}); err != nil || r.id != ours {
				t.Errorf("leaf worker init for a registry that was wiped: %v, ID %q; want %q", err, r.id, ours)
			}
			r.id, r.lost = "theirs", worker.ErrLost
			if _, err := claim(); err == nil || !strings.Contains(err.Error(), "another registry") || r.claims > claims {
				t.Errorf("a claim in another registry: %v", err)
			}
			if err := renew(own); err == nil || errors.Is(err, worker.ErrLost) {
				t.Errorf("a claim that another registry does not know: %v; want an error that is not ErrLost", err)
			}
			r.id, r.beside = ours, &segment.ClusterError{Own: "a", Found: "b"}
			for _, lost := range []error{worker.ErrLost, nil} { // not known there, or known because it is a copy
				r.lost = lost
				if err := renew(own); err == nil || errors.Is(err, worker.ErrLost) || !strings.Contains(err.Error(), `"b"`) {
					t.Errorf("a renewal in the store of another cluster: %v; want an error that names it and is not ErrLost", err)
				}
			}
			if _, err := claim(); err == nil || r.claims > claims {
				t.Errorf("a claim in the store of another cluster: %v", err)
			}
			r.lost, r.beside = worker.ErrLost, nil
			r.id, r.moves = ours, "theirs"
			if _, err := claim(); err == nil || !strings.Contains(err.Error(), "another registry") || r.claims != claims+1 {
				t.Errorf("a claim while the address changes its meaning: %v", err)
			}
			r.id = "theirs"
			if asked := r.asked; !isOthers(peers()) || r.asked > asked {
				t.Error("the peers in another registry are asked for their clocks")
			}
			r.id = ours
			if err := renew(own); !errors.Is(err, worker.ErrLost) {
				t.Errorf("a claim that is lost: %v", err)
			}
			r.lost = nil
			r.other = "theirs"
			_, claimed := claim()
			for call, err := range map[string]error{"a claim": claimed, "a renewal": renew(own), "the peers": peers()} {
				if !isOthers(err) {
					t.Errorf("%s in a server that did not tell the ID: %v", call, err)
				}
			}
			r.other = ""
		}
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestRegistryInAStoreGetsNoID: a node that has used a registry elsewhere, and lost the setting of it, has its registry in a store
// whose cluster tells whose it is. The node does not give it the ID of the other one, which would make it the same.
func TestRegistryInAStoreGetsNoID(t *testing.T) {
	t.Parallel()
	dir, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	if err := dir.Replace("registry", []byte("elsewhere\n")); err != nil {
		t.Fatal(err)
	}
	r := &identities{}
	known, err := app.KnownRegistry(r, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := known.Claim(t.Context(), worker.Request{}); err == nil || r.claims > 0 || r.id != "" {
		t.Errorf("claim in the store: %v, after %d claims its registry has the ID %q; want an error, 0 and none", err, r.claims, r.id)
	}
}

// TestRegistryMovesOutOfTheStore: nodes with snowflake mode alone had the registry in their store, whose ID is that of the
// cluster, and get an empty one elsewhere. All give it one ID, and find it again. One that loses the setting later does not take the
// registry in the store, whose numbers the others have elsewhere, for the same one.
func TestRegistryMovesOutOfTheStore(t *testing.T) {
	t.Parallel()
	store, elsewhere := &identities{id: "cluster"}, &identities{}
	claim := func(r *identities, dir *datadir.Dir, inStore bool) error {
		t.Helper()
		known, err := app.KnownRegistry(r, dir, inStore)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err = known.Claim(t.Context(), worker.Request{})
		}
		return err
	}
	used := func() *datadir.Dir {
		t.Helper()
		dir, err := datadir.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = dir.Close() })
		for name, content := range map[string]string{"registry": "cluster\n", "cluster": `{"default":"cluster"}`} {
			if err := dir.Replace(name, []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	for node := range 2 {
		dir := used()
		if err := claim(&identities{id: "others'"}, dir, false); err == nil {
			t.Errorf("node %d: claims in the registry of others", node)
		}
		for range 2 { // and a start later
			if err := claim(elsewhere, dir, false); err != nil || elsewhere.own != elsewhere.id {
				t.Errorf("node %d, in the new registry with the ID %q: %v, and its driver compares %q", node, elsewhere.id, err, elsewhere.own)
			}
		}
		if err := claim(store, dir, true); err == nil || store.claims > 0 {
			t.Errorf("node %d, without the setting of its registry: %v, and %d claims in the store; want an error, and none", node, err, store.claims)
		}
	}
	if len(elsewhere.id) != len(segment.NewClusterID()) {
		t.Errorf("the ID of the new registry is %q", elsewhere.id)
	}
	dir, fresh := used(), &identities{}
	known, err := app.KnownRegistry(fresh, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); err != nil { // from now on it keeps nothing
		t.Fatal(err)
	}
	if _, err := known.Claim(t.Context(), worker.Request{}); err != nil || fresh.own == "cluster" {
		t.Errorf("with a disk that does not keep the ID %q: %v, and the driver compares %q", fresh.id, err, fresh.own)
	}
}

// TestWorkerCommandsOfAnotherCluster: the commands for worker IDs, beside a data directory that has used the store of another
// cluster, change and show nothing of its registry.
func TestWorkerCommandsOfAnotherCluster(t *testing.T) {
	t.Parallel()
	clusters := make([]config.Config, 2)
	for i := range clusters {
		c := inStoreFile(t)
		c.Snowflake.Force = true
		_, stop := start(t, c)
		until(t, "the node keeps the ID of its cluster", func() bool {
			content, err := os.ReadFile(filepath.Join(c.DataDir, "cluster"))
			return err == nil && len(content) > len(segment.NewClusterID())
		})
		stop()
		atRegistry(t, c, func(b manage.Backend) error {
			_, err := manage.Ask(t.Context(), b, manage.ListWorkers{})
			return err
		})
		clusters[i] = c
	}
	misled := clusters[0]
	misled.Stores = clusters[1].Stores
	for command, ask := range map[string]func(b manage.Backend) error{
		"list":    func(b manage.Backend) error { _, err := manage.Ask(t.Context(), b, manage.ListWorkers{}); return err },
		"release": func(b manage.Backend) error { _, err := manage.Ask(t.Context(), b, manage.ReleaseWorker{}); return err },
		"init":    func(b manage.Backend) error { _, err := manage.Ask(t.Context(), b, manage.InitWorkers{}); return err },
	} {
		atRegistry(t, misled, func(b manage.Backend) error {
			err := ask(b)
			if _, other := errors.AsType[*segment.ClusterError](err); !other || !errors.Is(err, leaf.ErrConflict) {
				t.Errorf("leaf worker %s with the store of another cluster: %v; want a ClusterError that is ErrConflict", command, err)
			}
			return nil
		})
	}
}
