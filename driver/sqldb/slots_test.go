package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// openSlots returns the records of slots in the database of a store.
func openSlots(t testing.TB, s *sqldb.Store) worker.Records {
	t.Helper()
	r, err := s.Slots()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close the slots: %v", err)
		}
	})
	return r
}

// TestSlots: the statements for slots are those for worker IDs. What is lost under an owner shows that.
func TestSlots(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		s := open(t, url)
		drivertest.RunRegistryLosses(t, func(t *testing.T) drivertest.RegistryTarget {
			target := tablesTarget("leaf_slot", db)
			target.Wipe(t) // of the case before
			target.Open = func(t *testing.T) worker.Registry {
				t.Helper()
				r, err := s.Slots()
				if err != nil {
					t.Fatal(err)
				}
				return worker.NewPool(r)
			}
			return target
		})
	})
}

// TestSlotsBesideWorkerIDs: worker IDs and slots in one database do not see each other, and the fork's worker
// IDs are no slots.
func TestSlotsBesideWorkerIDs(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		execAll(t, db, "CREATE TABLE leaf_workerid_alloc (id int, ip_port varchar(40), max_timestamp bigint)",
			"INSERT INTO leaf_workerid_alloc VALUES (5, '10.0.0.9:1', 1)")
		workers, slots := openRecords(t, url), openSlots(t, open(t, url))
		ctx := t.Context()
		for name, r := range map[string]worker.Records{"workers": workers, "slots": slots} {
			want := &worker.StoredNamespace{Namespace: worker.Namespace{Name: name, Fingerprint: name}}
			if got, err := r.Namespace(ctx, want); err != nil || got.Name != name {
				t.Fatalf("Namespace of %s = %+v, %v", name, got, err)
			}
			record := first()
			record.Nonce = name
			if _, err := r.Put(ctx, record); err != nil {
				t.Fatalf("Put into %s: %v", name, err)
			}
		}
		if err := slots.Announce(ctx, worker.Peer{Nonce: "slots"}); err != nil {
			t.Error(err)
		}
		for name, r := range map[string]worker.Records{"workers": workers, "slots": slots} {
			if all, err := r.List(ctx); err != nil || len(all) != 1 || all[0].Nonce != name {
				t.Errorf("List of %s = %+v, %v; want its own record", name, all, err)
			}
			if peers, err := r.Peers(ctx); err != nil || len(peers) != 0 {
				t.Errorf("Peers of %s = %+v, %v; want none", name, peers, err)
			}
		}
		if reserved, err := slots.Reserved(ctx); err != nil || len(reserved) != 0 {
			t.Errorf("Reserved of slots = %+v, %v; want none", reserved, err)
		}
		for _, table := range []string{"leaf_slot_namespace", "leaf_slot_bound", "leaf_slot"} {
			execAll(t, db, "DELETE FROM "+table)
		}
		if all, err := slots.List(ctx); err != nil || len(all) != 0 {
			t.Errorf("List of slots that were deleted = %+v, %v", all, err)
		}
		if got := only(t, workers); got.Nonce != "workers" {
			t.Errorf("the worker ID after the slots were deleted: %+v", got)
		}
	})
}

// TestSlotsWithoutTables: a database of an older program serves everything else, and the slots say what makes
// their tables. They need no restart then.
func TestSlotsWithoutTables(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(t testing.TB) server.Database{"mysql": server.MariaDB, "postgres": server.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			applySchema(t, d.URL())
			execAll(t, d.Open(t), "DROP TABLE leaf_slot_namespace", "DROP TABLE leaf_slot_bound", "DROP TABLE leaf_slot")
			ctx, s := t.Context(), open(t, d.URL())
			slots := openSlots(t, s)
			for call, run := range map[string]func() error{
				"Namespace": func() error { _, err := slots.Namespace(ctx, &worker.StoredNamespace{}); return err },
				"List":      func() error { _, err := slots.List(ctx); return err },
				"Put":       func() error { _, err := slots.Put(ctx, first()); return err },
			} {
				err := run()
				if !errors.Is(err, worker.ErrSchema) || !strings.Contains(err.Error(), "leaf_slot…; run: leaf schema apply --store") {
					t.Errorf("%s: %v; want ErrSchema that names the tables and the command", call, err)
				}
			}
			bind(t, s)
			if err := s.Create(ctx, segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
				t.Error(err)
			}
			if _, err := s.Reserve(ctx, request(7)); err != nil {
				t.Errorf("Reserve: %v", err)
			}
			put(t, openRecords(t, d.URL()), first())
			applySchema(t, d.URL())
			if _, err := slots.Namespace(ctx, &worker.StoredNamespace{Namespace: worker.Namespace{Name: "a"}}); err != nil {
				t.Errorf("Namespace after leaf schema apply: %v", err)
			}
		})
	}
}

// TestSlotsHaveOwnConnections: a tag whose row is locked keeps no renewal waiting.
func TestSlotsHaveOwnConnections(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	applySchema(t, d.URL())
	s, err := sqldb.Open(d.URL(), sqldb.Config{MaxConns: 1, ConnectTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	slots := openSlots(t, s)
	err = s.Transact(t.Context(), "SELECT 1", func() { // it has the only connection of the store
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if _, err := slots.Put(ctx, first()); err != nil {
			t.Errorf("Put: %v", err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
