package app_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/segment"
)

// divided is a configuration of the databases a and b, whose files are in dir. The tag user is
// in b until a rule sends it to a.
func divided(t *testing.T) (dir string, c config.Config) {
	t.Helper()
	dir = shortDir(t)
	c = embedded(dir)
	c.Stores = []string{"a=sqlite:" + filepath.Join(dir, "a.db"), "b=sqlite:" + filepath.Join(dir, "b.db")}
	c.TagRules = []string{"order*=a"}
	c.Segment.FixedStep = true
	return dir, c
}

// startNamed returns the start that the refusal of a new tag names.
func startNamed(t *testing.T, err error) int64 {
	t.Helper()
	says := regexp.MustCompile(`use --start (\d+) or more`).FindStringSubmatch(fmt.Sprint(err))
	if !errors.Is(err, leaf.ErrConflict) || says == nil {
		t.Fatalf("create: %v; want a conflict that names a start", err)
	}
	start, err := strconv.ParseInt(says[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return start
}

// TestRuleBesideARowThatWasNotMoved: a new rule sends a tag to a database without its row.
// The error of the unknown tag says to create it. On a node that has no fence of its own it
// must not begin below the row in the old database, nor below the end of a row that was
// deleted there.
func TestRuleBesideARowThatWasNotMoved(t *testing.T) {
	t.Parallel()
	for _, deleted := range []bool{false, true} {
		name := "the row is still there"
		if deleted {
			name = "the row was deleted"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c := divided(t)
			old, stop := start(t, c)
			again := segment.NewRow{Tag: "user", Start: 1, Step: 5}
			if _, err := old.Backend().CreateTag(t.Context(), again); err != nil {
				t.Fatal(err)
			}
			issued := map[string]bool{}
			for range 12 {
				_, id := get(t, old, "/api/segment/get/user")
				issued[id] = true
			}
			if deleted {
				if err := old.Backend().DeleteTag(t.Context(), "user"); err != nil {
					t.Fatal(err)
				}
			}
			stop()

			fresh := c
			fresh.DataDir, fresh.TagRules = shortDir(t), []string{"user*=a"}
			if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, true); err != nil {
				t.Fatal(err)
			}
			node, _ := start(t, fresh)
			_, err := node.Backend().CreateTag(t.Context(), again)
			again.Start = startNamed(t, err)
			if _, err := node.Backend().CreateTag(t.Context(), again); err != nil {
				t.Fatal(err)
			}
			for range 12 {
				if status, id := get(t, node, "/api/segment/get/user"); status != 200 || issued[id] {
					t.Fatalf("got %d %s, which was issued before: %v", status, id, issued[id])
				}
			}
		})
	}
}
