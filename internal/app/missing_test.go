package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// TestSharedFileIsNotThere: two nodes share an SQLite file by a relative path, or on a disk that is not
// mounted at the next start. The node that does not find the file makes no other one: the tag that an
// operator makes there, as the texts say, knows nothing of what the other node issues.
func TestSharedFileIsNotThere(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(path string) error{
		"no file":       func(string) error { return nil },
		"an empty file": func(path string) error { return os.WriteFile(path, nil, 0o600) }, // a disk was full, say
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sharedFileIsNotThere(t, leave)
		})
	}
}

func sharedFileIsNotThere(t *testing.T, leave func(path string) error) {
	t.Helper()
	dir := shortDir(t)
	file := filepath.Join(dir, "shared.db")
	a, b := embedded(filepath.Join(dir, "a")), embedded(filepath.Join(dir, "b"))
	a.Stores = []string{"sqlite:" + file}
	b.Stores = a.Stores
	a.Snowflake.Enable, b.Snowflake.Enable = false, false
	makeTables(t, a.Stores[0])
	first, stop := start(t, a)
	order := manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 10}}
	if _, err := manage.Ask(t.Context(), first.Backend(), order); err != nil {
		t.Fatal(err)
	}
	get(t, first, "/api/segment/get/order")
	until(t, "the node remembers its cluster", func() bool {
		content, err := os.ReadFile(filepath.Join(a.DataDir, "cluster"))
		return err == nil && strings.Contains(string(content), `"default"`)
	})
	stop()
	other, _ := start(t, b)
	issued := map[string]bool{}
	for range 30 {
		_, id := get(t, other, "/api/segment/get/order")
		issued[id] = true
	}

	elsewhere := a
	path := filepath.Join(shortDir(t), "shared.db")
	elsewhere.Stores = []string{"sqlite:" + path}
	if err := leave(path); err != nil {
		t.Fatal(err)
	}
	node, err := app.New(elsewhere, app.Options{})
	if err == nil {
		defer func() { _ = node.Stop(t.Context()) }()
		err = node.Start(t.Context())
	}
	if err == nil {
		_, err := manage.Ask(t.Context(), node.Backend(), order)
		if err != nil {
			order.Start = startNamed(t, err)
			_, err = manage.Ask(t.Context(), node.Backend(), order)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, id := get(t, node, "/api/segment/get/order"); issued[id] {
				t.Fatalf("ID %s twice", id)
			}
		}
		t.Fatal("the node has made another database")
	}
	for _, want := range []string{"shared.db", "mounted", "leaf schema apply"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want that it says %q", err, want)
		}
	}
	_, done, openErr := app.Open(t.Context(), elsewhere, app.Options{}, true, app.Stores)
	if openErr == nil || openErr.Error() != err.Error() {
		t.Errorf("a command says %v, the start %v", openErr, err)
	}
	if openErr == nil {
		if err := done(); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		t.Error("the database was made")
	}
	applySchema(t, elsewhere) // as the text says
	start(t, elsewhere)
}
