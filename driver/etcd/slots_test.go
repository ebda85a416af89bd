package etcd_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// TestSlots: slots are stored as worker IDs are, below the prefix of the store.
func TestSlots(t *testing.T) {
	ns := server.Etcd(t)
	var places atomic.Int64
	drivertest.RunRegistryLosses(t, func(t *testing.T) drivertest.RegistryTarget {
		at := newPlace(t, ns.Servers, fmt.Sprintf("%s/%d", ns.Root, places.Add(1)))
		store, err := etcd.NewStore(at.config())
		if err != nil {
			t.Fatal(err)
		}
		at.prefix += "/slots"
		target := at.target()
		target.Open = func(t *testing.T) worker.Registry {
			t.Helper()
			slots, err := store.Slots()
			if err != nil {
				t.Fatal(err)
			}
			return worker.NewPool(slots)
		}
		return target
	})
}

// TestSlotsBesideRows: the store and its slots do not see each other.
func TestSlotsBesideRows(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	store, err := etcd.NewStore(p.config())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	slots, err := store.Slots()
	if err != nil {
		t.Fatal(err)
	}
	defer slots.Close()
	declare(t, slots)
	record := put(t, slots, worker.Record{Number: 7, Nonce: "mine", Bound: 100})
	if err := slots.Announce(short(t), worker.Peer{Nonce: "mine"}); err != nil {
		t.Error(err)
	}
	for _, key := range append(p.keys(t, false), p.keys(t, true)...) {
		if !strings.HasPrefix(key, "/slots/") {
			t.Errorf("the slots have the key %q", key)
		}
	}
	if err := store.Bind(short(t), segment.Binding{Store: "default"}); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(short(t), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	if all, err := slots.List(short(t)); err != nil || len(all) != 1 || all[0] != record {
		t.Errorf("List beside a tag = %+v, %v; want %+v", all, err, record)
	}
	(&place{prefix: p.prefix + "/slots/", raw: p.raw}).wipe(t)
	if rows, err := store.Rows(short(t)); err != nil || len(rows) != 1 || rows[0].Tag != "a" {
		t.Errorf("Rows after the slots were deleted = %+v, %v", rows, err)
	}
	record.Bound++
	if _, err := slots.Put(short(t), record); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Put over a record that was deleted: %v; want ErrLost", err)
	}
}

// TestSlotsLogIn: slots that are opened after a new password log in with that one.
func TestSlotsLogIn(t *testing.T) {
	store, err := etcd.NewStore(etcd.Config{Endpoints: []string{"127.0.0.1:1"}, Prefix: "/a", Username: "u", Password: "old"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	store.SetPassword("new")
	slots, err := store.Slots()
	if err != nil {
		t.Fatal(err)
	}
	defer slots.Close()
	if slots.SetPassword("new") {
		t.Error("the slots have the password of before")
	}
}
