package owner_test

import (
	"fmt"
	"regexp"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/owner"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// damaged opens a server whose record of slot 3 damage spoils. What named finds in the alarm is what remove deletes.
type damaged func(t *testing.T) (at reach, damage func(), named *regexp.Regexp, remove func(found string))

// TestDamagedRecordIsDeleted: an operator who deletes from a real server what the alarm about a damaged slot names gets the
// slot back.
func TestDamagedRecordIsDeleted(t *testing.T) {
	const number = 1024 + 3 // of the record of slot 3
	for name, start := range map[string]damaged{
		"mysql": func(t *testing.T) (reach, func(), *regexp.Regexp, func(string)) {
			t.Helper()
			d := server.MariaDB(t)
			_, at := mariaDBAt(t, d)
			db := d.Open(t)
			run := func(statement string, args ...any) {
				t.Helper()
				if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
					t.Fatal(err)
				}
			}
			damage := func() { run("UPDATE leaf_slot_bound SET bound = -1 WHERE id = ?", number) }
			return at, damage, regexp.MustCompile(`record (\d+): the tables leaf_slot`), func(id string) {
				run("DELETE FROM leaf_slot WHERE id = ?", id)
				run("DELETE FROM leaf_slot_bound WHERE id = ?", id)
			}
		},
		"etcd claim": inEtcdSpoilt(fmt.Sprintf("claims/%d", number)),
		"etcd bound": inEtcdSpoilt(fmt.Sprintf("bounds/%d", number)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, damage, named, remove := start(t)
			al := &alarms{active: map[string]leaf.Alarm{}}
			a := startOn(t, "a", at(t, ""), func(cfg *owner.Config) { cfg.Alarms = al })
			b := startOn(t, "b", at(t, ""))
			until(t, "all slots have owners", a, b, func(a, b int) bool { return a+b == slots })
			damage()
			until(t, "one slot has none", a, b, func(a, b int) bool { return a+b == slots-1 })
			deleted := ""
			until(t, "the alarm ends, and all slots have owners", a, b, func(a, b int) bool {
				text := al.text("slots damaged")
				if text == "" || text == deleted { // what it names was deleted: the next round tells more
					return text == "" && a+b == slots
				}
				found := named.FindStringSubmatch(text)
				if found == nil {
					t.Fatalf("the alarm names nothing to delete: %s", text)
				}
				remove(found[1])
				deleted = text
				return false
			})
		})
	}
}

// inEtcdSpoilt spoils a key of the slots in etcd.
func inEtcdSpoilt(key string) damaged {
	return func(t *testing.T) (reach, func(), *regexp.Regexp, func(string)) {
		t.Helper()
		ns := server.Etcd(t)
		raw, err := clientv3.New(clientv3.Config{Endpoints: ns.Servers, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = raw.Close() })
		damage := func() {
			t.Helper()
			if _, err := raw.Put(t.Context(), ns.Root+"/slots/"+key, "spoilt"); err != nil {
				t.Fatal(err)
			}
		}
		_, at := etcdAt(ns)
		return at, damage, regexp.MustCompile(`etcd key "([^"]+)"`), func(key string) {
			t.Helper()
			if _, err := raw.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
	}
}
