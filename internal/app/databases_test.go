package app_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

// TestNoChangeBeforeTheBinding: a command through a node must not write into a
// database that may belong to others.
func TestNoChangeBeforeTheBinding(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Stores = []string{"mysql://leaf@127.0.0.1:1/leaf"}
	node, _ := start(t, c)
	b := node.Backend()
	step := int64(5)
	for name, err := range map[string]error{
		"create": second(manage.Ask(t.Context(), b, manage.CreateTag{NewRow: segment.NewRow{Tag: "x", Start: 1, Step: 5}})),
		"set":    second(manage.Ask(t.Context(), b, manage.SetTag{Name: "x", Change: segment.Change{Step: &step}})),
		"delete": manage.Tell(t.Context(), b, manage.DeleteTag{Name: "x"}),
	} {
		if !errors.Is(err, leaf.ErrNotReady) || !strings.Contains(err.Error(), "has not answered yet") {
			t.Errorf("%s: %v, want not ready before anything is sent", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestSeveralStores(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	c := embedded(dir)
	c.Stores = []string{"a=sqlite:" + filepath.Join(dir, "a.db"), "b=sqlite:" + filepath.Join(dir, "b.db")}
	c.TagRules = []string{"order*=a"}
	applySchema(t, c)
	node, stop := start(t, c)
	b := node.Backend()
	for _, name := range []string{"order-1", "user"} {
		if _, err := manage.Ask(t.Context(), b, manage.CreateTag{NewRow: segment.NewRow{Tag: name, Start: 1, Step: 5}}); err != nil {
			t.Error(err)
		}
		if status, body := get(t, node, "/api/segment/get/"+name); status != 200 || body != "1" {
			t.Errorf("%s: got %d %s", name, status, body)
		}
	}
	tags, err := manage.Ask(t.Context(), b, manage.ListTags{})
	if err != nil || len(tags) != 2 || tags[0].Store != "a" || tags[1].Store != "b" {
		t.Errorf("got %+v, %v", tags, err)
	}
	stop()

	c.TagRules = []string{"user*=a"}
	a, err := app.New(c, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "rule") {
		t.Errorf("another rule: got %v", err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := app.ApplySchema(t.Context(), c, app.Options{}, nil); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "--accept-rule") {
		t.Errorf("apply: got %v", err)
	}
	if report, err := app.ApplySchema(t.Context(), c, app.Options{}, &app.RuleChange{}); err != nil {
		t.Errorf("apply with --accept-rule: got %v, %v", report, err)
	}
	_, stop = start(t, c)
	stop()
}

// TestRuleBesideRowsThatWereMovedTooEarly: the row of a tag is copied to where a new rule
// expects it, and the nodes of the old rule take ranges after that. An operator who then
// does what the texts say repeats no ID, also with a node that has no fence of its own.
func TestRuleBesideRowsThatWereMovedTooEarly(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	dir, c := divided(t)
	old, stop := start(t, c)
	if _, err := manage.Ask(t.Context(), old.Backend(), manage.CreateTag{NewRow: segment.NewRow{Tag: "user", Start: 1, Step: 5}}); err != nil {
		t.Fatal(err)
	}
	a, err := sqldb.Open("sqlite:"+filepath.Join(dir, "a.db"), sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	if err := a.Create(t.Context(), segment.NewRow{Tag: "user", Start: 1, Step: 5}); err != nil {
		t.Fatal(err)
	}
	issued := map[string]bool{}
	for range 12 {
		_, id := get(t, old, "/api/segment/get/user")
		issued[id] = true
	}
	stop()

	fresh := c
	fresh.DataDir, fresh.TagRules = shortDir(t), []string{"user*=a"}
	if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, nil); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "stop all nodes, and Java servers for good, then move the rows") {
		t.Errorf("apply: got %v", err)
	}
	_, err = app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{})
	if want := `its row in store "a", where the rule expects it, has max_id=1, but its row in store "b" has max_id=13`; !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), want) {
		t.Errorf("apply with --accept-rule: got %v, want a conflict that says %q", err, want)
	}
	above := int64(13)
	if err := a.Update(t.Context(), "user", segment.Change{MaxID: &above}); err != nil {
		t.Fatal(err)
	}
	if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, &app.RuleChange{}); err != nil {
		t.Errorf("apply with --accept-rule, and the row above: got %v", err)
	}
	node, _ := start(t, fresh)
	for range 12 {
		status, id := get(t, node, "/api/segment/get/user")
		if status != 200 || issued[id] {
			t.Fatalf("got %d %s, which was issued before: %v", status, id, issued[id])
		}
	}
}
