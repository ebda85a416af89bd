package app_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/segment"
)

// TestWorkerIDsOfAnotherRule: worker IDs come from the first database of the tag rule. A node that has the
// databases in another order takes none, also where none of the others answers: the worker IDs of its first
// database are those that the other nodes get from theirs. A node that runs while another first database is
// recorded, as one that was suspended or cut off, raises no T in the first database of before.
func TestWorkerIDsOfAnotherRule(t *testing.T) {
	t.Parallel()
	dir, c := divided(t)
	c.Snowflake.Renew = 100 * time.Millisecond
	running, _ := start(t, c)
	b := openFile(t, filepath.Join(dir, "b.db"))

	swapped := c
	swapped.DataDir, swapped.Stores = shortDir(t), slices.Clone(c.Stores)
	slices.Reverse(swapped.Stores)
	node, err := app.New(swapped, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := node.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if err := node.Start(t.Context()); !errors.Is(err, segment.ErrRule) {
		t.Errorf("Start with the databases in another order: %v; want ErrRule", err)
	}
	if n := count(t, b, "SELECT (SELECT count(*) FROM leaf_worker) + (SELECT count(*) FROM leaf_worker_namespace)"); n > 0 {
		t.Errorf("the node has written %d rows into the registry of its first database", n)
	}

	a := openFile(t, filepath.Join(dir, "a.db"))
	execute(t, a, "UPDATE leaf_meta SET value = 'another rule' WHERE name = 'tag_rule'")
	const bounds = "SELECT sum(bound) FROM leaf_worker_bound"
	before := count(t, a, bounds)
	until(t, "the running node says why its registry cannot be used", func() bool {
		_, text := get(t, running, "/readyz")
		return strings.Contains(text, "no worker ID is claimed or renewed")
	})
	if now := count(t, a, bounds); now != before {
		t.Errorf("T is %d, and was %d when another rule was recorded", now, before)
	}
}

func count(t *testing.T, db *sql.DB, query string) (n int64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
