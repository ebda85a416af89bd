package owner_test

import (
	"context"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/owner"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// reach opens the records of slots by an address of their server; "" is its own.
type reach func(t *testing.T, address string) worker.Records

// A node that is cut off from a real server loses its slots to the other one, and gets its share back.
func TestServers(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (address string, at reach){
		"mysql": inMariaDB, "etcd": inEtcd,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, at := start(t)
			cut, err := proxy.Start(address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cut.Close)
			a, b := startOn(t, "a", at(t, cut.Addr())), startOn(t, "b", at(t, ""))
			until(t, "both have slots", a, b, func(a, b int) bool { return a > 0 && b > 0 && a+b == slots })
			cut.Swallow(proxy.Client, proxy.Server)
			until(t, "b has all slots", a, b, func(_, b int) bool { return b == slots })
			cut.Swallow()
			cut.Cut() // connections that are silent until their time is up
			until(t, "both have slots again", a, b, func(a, b int) bool { return a > 0 && b > 0 && a+b == slots })
			if err := a.Close(t.Context()); err != nil {
				t.Error(err)
			}
			until(t, "b has what a left", a, b, func(_, b int) bool { return b == slots })
		})
	}
}

func inMariaDB(t *testing.T) (address string, at reach) {
	t.Helper()
	return mariaDBAt(t, server.MariaDB(t))
}

func mariaDBAt(t *testing.T, d server.Database) (address string, at reach) {
	t.Helper()
	open := func(t *testing.T, d server.Database) *sqldb.Store {
		t.Helper()
		s, err := sqldb.Open(d.URL(), sqldb.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	if _, err := open(t, d).ApplySchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d.Addr(), func(t *testing.T, address string) worker.Records {
		t.Helper()
		via := d
		if address != "" {
			via = d.Via(address)
		}
		records, err := open(t, via).Slots()
		return opened(t, records, err)
	}
}

func inEtcd(t *testing.T) (address string, at reach) {
	t.Helper()
	return etcdAt(server.Etcd(t))
}

func etcdAt(ns server.Namespace) (address string, at reach) {
	return ns.Servers[0], func(t *testing.T, address string) worker.Records {
		t.Helper()
		if address == "" {
			address = ns.Servers[0]
		}
		s, err := etcd.NewStore(etcd.Config{Endpoints: []string{address}, Prefix: ns.Root})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		records, err := s.Slots()
		return opened(t, records, err)
	}
}

func opened(t *testing.T, records worker.Records, err error) worker.Records {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = records.Close() })
	return records
}

func startOn(t *testing.T, address string, records worker.Records, with ...func(*owner.Config)) *owner.Slots {
	t.Helper()
	began := time.Now()
	cfg := owner.Config{
		Address: address, Namespace: "test", Slots: slots, Lease: time.Second,
		Elapsed: func() time.Duration { return time.Since(began) },
	}
	for _, change := range with {
		change(&cfg)
	}
	s, err := owner.New(records, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// until looks at two nodes again and again until they have as many slots as holds wants.
func until(t *testing.T, what string, a, b *owner.Slots, holds func(a, b int) bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var ofA, ofB int
		for k, tag := range tags {
			termB, errB := b.Term(tag)
			termA, errA := a.Term(tag)
			inB := errB == nil && termB.Valid()
			inA := errA == nil && termA.Valid()
			// A term that has ended never begins again: b's was valid when a's was asked, too.
			if inA && inB && termB.Valid() {
				t.Fatalf("slot %d has two owners", k)
			}
			if inA {
				ofA++
			}
			if inB {
				ofB++
			}
		}
		if holds(ofA, ofB) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not in time: %s; a has %d slots and b %d", what, ofA, ofB)
		}
	}
}
