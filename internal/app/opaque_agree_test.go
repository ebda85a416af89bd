package app_test

import (
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/opaque"
)

// nodeWithKeys is the configuration of a node of the database with a file of keys of its own.
func nodeWithKeys(t *testing.T, database string) (c config.Config, ring *opaque.Ring) {
	t.Helper()
	ring, err := opaque.NewRing(63, 2)
	if err != nil {
		t.Fatal(err)
	}
	c = embedded(shortDir(t))
	c.Stores = []string{"sqlite:" + database}
	c.Opaque.Keys = filepath.Join(t.TempDir(), "opaque.keys")
	writeRing(t, c, ring)
	return c, ring
}

func writeRing(t *testing.T, c config.Config, ring *opaque.Ring) {
	t.Helper()
	if err := os.WriteFile(c.Opaque.Keys, ring.Text(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withOrder makes the tables of a node's database, and a tag.
func withOrder(t *testing.T, c config.Config, database string) *sql.DB {
	t.Helper()
	applySchema(t, c)
	db := openFile(t, database)
	execute(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step, update_time) VALUES ('order', 1, 10, CURRENT_TIMESTAMP)")
	return db
}

func makesOpaqueIDs(t *testing.T, a *app.App) bool {
	t.Helper()
	status, _ := get(t, a, "/api/segment/get/order?format=opaque")
	return status == http.StatusOK
}

// TestOpaqueKeysOfTwoNodes: a node whose key is another one than that of the nodes before makes no
// opaque ID, neither with the keys that it starts with nor with those of a reload. It gives numbers,
// and opaque IDs as soon as it has the keys of the others.
func TestOpaqueKeysOfTwoNodes(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "leaf.db")
	one, ring := nodeWithKeys(t, database)
	two, _ := nodeWithKeys(t, database)
	db := withOrder(t, one, database)

	a, stopFirst := start(t, one)
	if status, body := get(t, a, "/api/segment/get/order?format=opaque"); status != http.StatusOK {
		t.Fatalf("the first node: %d %s", status, body)
	}
	refused := func(b *app.App) {
		t.Helper()
		if status, body := get(t, b, "/api/segment/get/order?format=opaque"); status != http.StatusServiceUnavailable || !strings.Contains(body, "another key") {
			t.Errorf("an opaque ID by another key 0: %d %s", status, body)
		}
		if status, body := get(t, b, "/api/segment/get/order"); status != http.StatusOK {
			t.Errorf("a number: %d %s", status, body)
		}
		if _, body := get(t, b, "/readyz"); !strings.Contains(body, "remove file opaque.json") || !strings.Contains(body, "DELETE FROM leaf_meta WHERE name = 'opaque_key_0'") {
			t.Errorf("the alarm is missing: %s", body)
		}
	}
	b, stop := start(t, two)
	refused(b)
	stop() // as the alarm says
	if err := os.Remove(filepath.Join(two.DataDir, "opaque.json")); err != nil {
		t.Fatal(err)
	}
	writeRing(t, two, ring)
	b, stop = start(t, two)
	if status, body := get(t, b, "/api/segment/get/order?format=opaque"); status != http.StatusOK {
		t.Errorf("with the keys of the other node: %d %s", status, body)
	}
	stop()

	three, ring := nodeWithKeys(t, database)
	c, _ := start(t, three)
	refused(c)
	stopFirst() // the other thing that the alarm says
	execute(t, db, "DELETE FROM leaf_meta WHERE name = 'opaque_key_0'")
	until(t, "the node makes opaque IDs", func() bool { return makesOpaqueIDs(t, c) })
	if _, body := get(t, c, "/readyz"); strings.Contains(body, "leaf_meta") {
		t.Errorf("the alarm stays: %s", body)
	}
	if err := os.Remove(filepath.Join(one.DataDir, "opaque.json")); err != nil {
		t.Fatal(err)
	}
	writeRing(t, one, ring)
	a, _ = start(t, one)
	if status, body := get(t, a, "/api/segment/get/order?format=opaque"); status != http.StatusOK {
		t.Errorf("the first node, with the keys of the last one: %d %s", status, body)
	}
}

// TestOpaqueKeysOfTwoSizes: opaque IDs with another number of bits for the version can be equal to those of the
// other nodes although the versions differ, so a node with such keys makes none.
func TestOpaqueKeysOfTwoSizes(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "leaf.db")
	one, _ := nodeWithKeys(t, database)
	two, ring := nodeWithKeys(t, database)
	ring.VersionBits = 3
	var err error
	if ring.Issue, err = ring.Add(); err != nil {
		t.Fatal(err)
	}
	writeRing(t, two, ring)
	db := withOrder(t, one, database)
	_, stop := start(t, one)
	b, _ := start(t, two)
	if status, body := get(t, b, "/api/segment/get/order?format=opaque"); status != http.StatusServiceUnavailable || !strings.Contains(body, "another key") {
		t.Errorf("an opaque ID of another size: %d %s", status, body)
	}
	const remove = "DELETE FROM leaf_meta WHERE name LIKE 'opaque_%'"
	if _, body := get(t, b, "/readyz"); !strings.Contains(body, remove) || !strings.Contains(body, "version-bits 3") {
		t.Errorf("the alarm is missing: %s", body)
	}
	stop() // as the alarm says
	execute(t, db, remove)
	until(t, "the node makes opaque IDs", func() bool { return makesOpaqueIDs(t, b) })
}

// TestRecordOfTheOpaqueKeyIsLost: a database that is restored, or that fails over to a replica without the
// last commits, may have lost the record of the key with which nodes make opaque IDs. A node writes it back.
// If a node with another key was faster, the node stops making opaque IDs.
func TestRecordOfTheOpaqueKeyIsLost(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "leaf.db")
	c, _ := nodeWithKeys(t, database)
	db := withOrder(t, c, database)
	a, _ := start(t, c)
	if !makesOpaqueIDs(t, a) {
		t.Fatal("the node makes no opaque IDs")
	}
	record := func() (value string) {
		if err := db.QueryRowContext(t.Context(), "SELECT COALESCE(MAX(value), '') FROM leaf_meta WHERE name = 'opaque_key_0'").Scan(&value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	before := record()
	execute(t, db, "DELETE FROM leaf_meta WHERE name = 'opaque_key_0'")
	until(t, "the node writes the record back", func() bool { return record() == before })
	if !makesOpaqueIDs(t, a) {
		t.Error("the node makes no opaque IDs after that")
	}
	execute(t, db, "UPDATE leaf_meta SET value = 'of a node that was faster' WHERE name = 'opaque_key_0'")
	until(t, "the node makes no opaque IDs beside another key", func() bool { return !makesOpaqueIDs(t, a) })
	if _, body := get(t, a, "/readyz"); !strings.Contains(body, "is not the one of the other nodes") {
		t.Errorf("the alarm is missing: %s", body)
	}
}

// TestReloadOfOpaqueKeysOfTwoNodes: a reload refuses a new key that is not the one of the other nodes,
// and the node goes on with the key that it has.
func TestReloadOfOpaqueKeysOfTwoNodes(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "leaf.db")
	one, ring := nodeWithKeys(t, database)
	db := withOrder(t, one, database)
	a, _ := start(t, one)
	execute(t, db, "INSERT INTO leaf_meta (name, value) VALUES ('opaque_key_1', 'of a node that has read another file')")
	if _, err := ring.Add(); err != nil {
		t.Fatal(err)
	}
	ring.Issue = 1
	writeRing(t, one, ring)
	if _, err := a.Reload(one); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("got %v, want a refusal", err)
	}
	if status, body := get(t, a, "/api/segment/get/order?format=opaque"); status != http.StatusOK {
		t.Errorf("with the key before: %d %s", status, body)
	}
	execute(t, db, "DELETE FROM leaf_meta WHERE name = 'opaque_key_1'")
	if _, err := a.Reload(one); err != nil {
		t.Error(err)
	}
	if status, body := get(t, a, "/api/segment/get/order?format=opaque"); status != http.StatusOK {
		t.Errorf("with the new key: %d %s", status, body)
	}
}

// TestOpaqueKeysWithoutTheDatabase: while the database does not answer, a node does not know whether
// its key is the one of the others.
func TestOpaqueKeysWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	c, _ := nodeWithKeys(t, filepath.Join(t.TempDir(), "nowhere", "leaf.db"))
	c.Snowflake.Registry, c.Snowflake.WorkerID = "static", "1"
	a, err := app.New(c, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Stop(t.Context())
	go func() { _ = a.Start(t.Context()) }()
	until(t, "the node says that it has not compared its key", func() bool {
		status, body := get(t, a, "/api/snowflake/get/any?format=opaque")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "is not compared")
	})
}

// TestOpaqueKeysOfTwoNodesInUse types what the alarm says where opaque IDs of both keys are in use: the node makes
// opaque IDs again, and its files still decode those of its old key.
func TestOpaqueKeysOfTwoNodesInUse(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "leaf.db")
	one, theirs := nodeWithKeys(t, database)
	two, own := nodeWithKeys(t, database)
	withOrder(t, one, database)
	a, _ := start(t, one)
	if !makesOpaqueIDs(t, a) {
		t.Fatal("the first node makes no opaque IDs")
	}
	b, _ := start(t, two)
	_, alarm := get(t, b, "/readyz")
	_, says, ok := strings.Cut(alarm, "If opaque IDs of both are in use, ")
	if !ok {
		t.Fatalf("the alarm does not say what to do: %s", alarm)
	}
	version, err := theirs.Add()
	if err != nil {
		t.Fatal(err)
	}
	reload := func(node *app.App, c config.Config, ring *opaque.Ring, issue int) {
		t.Helper()
		ring.Issue = issue
		writeRing(t, c, ring)
		if _, err := node.Reload(c); err != nil {
			t.Errorf("issue %d: %v", issue, err)
		}
	}
	reload(a, one, theirs, 0)
	reload(a, one, theirs, version)
	if strings.Contains(says, "add its lines key and used to the file of this node") {
		own.Keys[version], own.Used = theirs.Keys[version], version
	} else { // give this node that file
		own = theirs
	}
	reload(b, two, own, version)
	until(t, "the node makes opaque IDs", func() bool { return makesOpaqueIDs(t, b) })
	until(t, "the alarm ends", func() bool {
		_, body := get(t, b, "/readyz")
		return !strings.Contains(body, "leaf_meta")
	})
}
