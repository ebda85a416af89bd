package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestStartWithoutItsStore: a node shares a database with others, and is started once without
// LEAF_STORE, by hand or from a unit that lost its environment. With the embedded database it would
// hand out the tag and the worker IDs that the other nodes have. Neither the node nor a command
// without it makes one there, although store-private allows the file that the nodes of this machine
// share. What the refusal says of a node of its own lets it start.
func TestStartWithoutItsStore(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(t *testing.T, c config.Config){
		"its cluster has an ID": func(*testing.T, config.Config) {},
		"as its cluster had none": func(t *testing.T, c config.Config) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(c.DataDir, "cluster"), []byte(`{"default":""}`), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"only snowflake mode is on": func(*testing.T, config.Config) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			c := embedded(filepath.Join(dir, "a"))
			c.StorePrivate = false
			c.Segment.Enable = name != "only snowflake mode is on"
			c.Stores = []string{"sqlite:" + filepath.Join(dir, "shared.db")}
			makeTables(t, c.Stores[0])
			_, stop := start(t, c)
			until(t, "the node remembers its store", func() bool {
				content, err := os.ReadFile(filepath.Join(c.DataDir, "cluster"))
				return err == nil && strings.Contains(string(content), `"default"`)
			})
			stop()
			forget(t, c)

			bare := c
			bare.Stores, bare.StorePrivate = nil, true
			text := ""
			refused := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), `uses store "default"`) {
					t.Errorf("%s: %v; want ErrConflict that names the store", what, err)
					return
				}
				text = err.Error()
			}
			a, err := app.New(bare, app.Options{})
			refused("start", err)
			if err == nil {
				if err := a.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			}
			for what, open := range map[string]app.Without{"a command about tags": app.Stores, "a command about worker IDs": app.Registry} {
				_, done, err := app.Open(t.Context(), bare, app.Options{}, true, open)
				refused(what, err)
				if err == nil {
					if err := done(); err != nil {
						t.Error(err)
					}
				}
			}
			_, err = app.RebuildFence(t.Context(), bare)
			refused("fence rebuild", err)
			if _, err := os.Stat(filepath.Join(c.DataDir, "leaf.db")); err == nil {
				t.Error("leaf.db was made")
			}

			_, file, found := strings.Cut(text, "wait for the longest horizon, longer after a clock was ahead (docs/SNOWFLAKE.md#operating), for the worker IDs of leaf.db do not wait, and remove the file ")
			if !found {
				t.Fatal(text)
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			bare.Segment.Enable = true
			private, _ := start(t, bare)
			if _, err := manage.Ask(t.Context(), private.Backend(), manage.GetInfo{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStoreWithoutIDIsRemembered: a database that only the Java server has set up has no ID. The node remembers its name.
func TestStoreWithoutIDIsRemembered(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	c := embedded(filepath.Join(shortDir(t), "d"))
	c.Stores, c.Snowflake.Enable = []string{d.URL()}, false
	applySchema(t, c)
	execute(t, d.Open(t), "DROP TABLE leaf_meta")
	start(t, c)
	until(t, "the node remembers its store", func() bool {
		content, err := os.ReadFile(filepath.Join(c.DataDir, "cluster"))
		return err == nil && strings.TrimSpace(string(content)) == `{"default":""}`
	})
}

// TestStoreIsRememberedBesideOneThatIsDown: the second of two stores is down for as long as the node runs. The node must remember
// the first one, from which it takes worker IDs and ranges, all the same.
func TestStoreIsRememberedBesideOneThatIsDown(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]int{"the first one": 0, "the second one": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := embedded(shortDir(t))
			c.StorePrivate, c.TagRules = false, []string{"order*=a"}
			folder := t.TempDir()
			files := []string{filepath.Join(folder, "a.db"), filepath.Join(folder, "b.db")}
			c.Stores = []string{"a=sqlite:" + files[0], "b=sqlite:" + files[1]}
			if _, err := app.ApplySchema(t.Context(), c, app.Options{}, nil); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(files[down], []byte("this is no database, so every statement fails"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, stop := start(t, c)
			up := string("ab"[1-down])
			until(t, "the node remembers the store that answers", func() bool {
				content, err := os.ReadFile(filepath.Join(c.DataDir, "cluster"))
				return err == nil && strings.Contains(string(content), `"`+up+`":"`) && !strings.Contains(string(content), `"`+string("ab"[down])+`"`)
			})
			stop()
			bare := c
			bare.Stores, bare.TagRules = nil, nil
			a, err := app.New(bare, app.Options{})
			if !errors.Is(err, leaf.ErrConflict) {
				t.Errorf("start without the stores: %v; want ErrConflict", err)
			}
			if err == nil {
				_ = a.Stop(t.Context())
			}
		})
	}
}
