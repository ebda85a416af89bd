package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// setClusterID makes the database that of a cluster.
func setClusterID(t *testing.T, db *sql.DB, id string) {
	t.Helper()
	execAll(t, db, "DELETE FROM leaf_meta WHERE name = 'cluster_id'", "INSERT INTO leaf_meta (name, value) VALUES ('cluster_id', '"+id+"')")
}

// TestRegistriesOfAnotherCluster is rule V: the database becomes that of another cluster, with the registries in it. The
// node hears of no owner and of no worker ID there, and makes no namespace.
func TestRegistriesOfAnotherCluster(t *testing.T) {
	const ours = "the cluster of an earlier process"
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		for _, tt := range []struct {
			node  string
			knows func(ctx context.Context, s *sqldb.Store) error
			runs  bool // while the database becomes the other cluster's; else the node starts then
		}{
			{"that has bound the database", func(ctx context.Context, s *sqldb.Store) error { return s.Bind(ctx, segment.Binding{Store: "default"}) }, true},
			{"without segment mode", func(ctx context.Context, s *sqldb.Store) error { _, err := s.ClusterID(ctx); return err }, true},
			{"that starts", func(_ context.Context, s *sqldb.Store) error { return s.Expect(ours) }, false},
		} {
			setClusterID(t, db, ours)
			s := open(t, url)
			if err := tt.knows(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			workers, err := s.Records()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = workers.Close() })
			for name, r := range map[string]worker.Records{"worker IDs": workers, "slots": openSlots(t, s)} {
				if tt.runs {
					setClusterID(t, db, ours)
					if all, err := r.List(t.Context()); err != nil || len(all) > 0 {
						t.Fatalf("%s of a node %s: %v, %v", name, tt.node, all, err)
					}
				}
				setClusterID(t, db, otherID)
				for call, do := range map[string]func() error{
					"Namespace": func() error { _, err := r.Namespace(t.Context(), nil); return err },
					"Namespace that is made": func() error {
						_, err := r.Namespace(t.Context(), &worker.StoredNamespace{Namespace: worker.Namespace{Name: "n", Fingerprint: "f"}})
						return err
					},
					"List":     func() error { _, err := r.List(t.Context()); return err },
					"Peers":    func() error { _, err := r.Peers(t.Context()); return err },
					"Reserved": func() error { _, err := r.Reserved(t.Context()); return err },
				} {
					err := do()
					if (call == "Peers" || call == "Reserved") && name == "slots" {
						continue // they have none
					}
					if other, ok := errors.AsType[*segment.ClusterError](err); !ok || other.Own != ours || other.Found != otherID || errors.Is(err, worker.ErrLost) {
						t.Errorf("%s of the %s of a node %s: %v; want a ClusterError alone", call, name, tt.node, err)
					}
				}
			}
		}
		var made int
		if err := db.QueryRowContext(t.Context(), "SELECT (SELECT COUNT(*) FROM leaf_worker_namespace) + (SELECT COUNT(*) FROM leaf_slot_namespace)").Scan(&made); err != nil || made > 0 {
			t.Errorf("%d namespaces, %v; want none", made, err)
		}
	})
}

// TestRegistryBehindTwoServers is rule V: the name of a registry leads to two servers. One answers which registry it is, and the
// claim that follows is made in the other. No node gets a number there, and none hears of the peers there.
func TestRegistryBehindTwoServers(t *testing.T) {
	const ours = "the registry of this node"
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		setClusterID(t, db, ours)
		r := openRecords(t, url)
		if err := r.Expect(ours); err != nil {
			t.Fatal(err)
		}
		if id, err := r.Identify(t.Context(), ours); id != ours || err != nil {
			t.Fatalf("ID %q, %v", id, err)
		}
		pool := worker.NewPool(r)
		ns, now := worker.Namespace{Name: "n", Fingerprint: "f"}, time.Now().UnixMilli()
		if err := pool.Init(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		claim := func(nonce string) error {
			_, err := pool.Claim(t.Context(), worker.Request{Namespace: ns, Address: "10.0.0.1:8080", Nonce: nonce, Numbers: leaf.Range{Hi: 4}, Now: now, Bound: now + 1})
			return err
		}
		if err := claim("first"); err != nil {
			t.Fatalf("in its own registry: %v", err)
		}
		setClusterID(t, db, otherID)
		peers := func() error { _, err := pool.Peers(t.Context()); return err }
		for call, err := range map[string]error{"a claim": claim("second"), "the peers": peers()} {
			if other, ok := errors.AsType[*segment.ClusterError](err); !ok || other.Found != otherID || errors.Is(err, worker.ErrLost) {
				t.Errorf("%s: %v; want a ClusterError alone", call, err)
			}
		}
		var claims int
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM leaf_worker").Scan(&claims); err != nil || claims != 1 {
			t.Errorf("%d claims, %v; want the first alone", claims, err)
		}
		execAll(t, db, "DELETE FROM leaf_meta WHERE name = 'cluster_id'")
		if err := claim("third"); err != nil {
			t.Errorf("a registry that was wiped: %v", err)
		}
	})
}

// TestRegistryBehindAPooler is rule V: a pooler of transactions sends the statements of one connection to two servers. One says
// which registry it is, and the other, that of other nodes, has the namespace. No node gets a number there.
func TestRegistryBehindAPooler(t *testing.T) {
	const ours = "the registry of this node"
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		setClusterID(t, db, ours)
		alternates := &seam{trip: func(call string, after bool) {
			switch {
			case after:
			case call == "Query SELECT value FROM leaf_meta WHERE name = 'cluster_id'":
				setClusterID(t, db, ours)
			case strings.HasPrefix(call, "Query SELECT name, fingerprint"):
				setClusterID(t, db, otherID)
			}
		}}
		r, err := sqldb.OpenRecords(url, sqldb.WithFaults(sqldb.Config{ConnectTimeout: 10 * time.Second}, alternates.below))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		if err := r.Expect(ours); err != nil {
			t.Fatal(err)
		}
		if id, err := r.Identify(t.Context(), ours); id != ours || err != nil {
			t.Fatalf("ID %q, %v", id, err)
		}
		ns, now := worker.Namespace{Name: "n", Fingerprint: "f"}, time.Now().UnixMilli()
		if err := worker.NewPool(openRecords(t, url)).Init(t.Context(), ns); err != nil { // by one of the other nodes
			t.Fatal(err)
		}
		_, err = worker.NewPool(r).Claim(t.Context(), worker.Request{Namespace: ns, Address: "10.0.0.1:8080", Nonce: "a", Numbers: leaf.Range{Hi: 4}, Now: now, Bound: now + 1})
		if other, ok := errors.AsType[*segment.ClusterError](err); !ok || other.Found != otherID {
			t.Errorf("a claim: %v; want a ClusterError", err)
		}
		var claims int
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM leaf_worker").Scan(&claims); err != nil || claims != 0 {
			t.Errorf("%d claims, %v; want none", claims, err)
		}
	})
}
