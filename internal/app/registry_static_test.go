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
)

// TestStaticNumberAfterARegistry: a node that had its worker ID from a registry gets a static one, by a rolling restart say. The
// nodes that are still in the registry get the same numbers, so the node does not start before its administrator has done what
// the error says. Nor does one whose number was static before it was in the registry: its worker.json is still there, and a
// rolling restart takes it back to static beside the others.
func TestStaticNumberAfterARegistry(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Snowflake.Registry, c.Snowflake.WorkerID = config.RegistryStatic, "7"
	kept := filepath.Join(c.DataDir, "registry")
	keep := func() {
		t.Helper()
		if err := os.WriteFile(kept, []byte("elsewhere\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(file string) {
		t.Helper()
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(file string) {
		t.Helper()
		_, err := app.New(c, app.Options{})
		if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), `"elsewhere"`) || !strings.Contains(err.Error(), kept) ||
			!strings.Contains(err.Error(), "and its Java servers for good") {
			t.Errorf("New with worker.json=%s: %v; want ErrConflict that names the registry, the file, and who else has its numbers", file, err)
		}
	}
	keep()
	for _, file := range []string{"", `{"registry":"zookeeper"}`} {
		if file != "" {
			if err := os.WriteFile(filepath.Join(c.DataDir, "worker.json"), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		refused(file)
	}
	remove(kept)
	remove(filepath.Join(c.DataDir, "worker.json"))
	_, stop := start(t, c)
	stop()
	keep() // from a registry that the node has been in since
	refused("that of a static number")
	remove(kept)
	start(t, c)
}

// TestStaticNumberOfLongAgo: a version that did not compare let nodes change between static numbers and a registry. Where all
// have changed long ago, the way back gives one of them the number of another, so no text may name it without a condition.
func TestStaticNumberOfLongAgo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ registry, number, file, content, back string }{
		{config.RegistryStatic, "7", "registry", "elsewhere\n", "If the node has had no static worker ID since, set snowflake.registry back: "},
		{config.RegistryAuto, "", "worker.json", `{"registry":"static","number":7}`, "If the node has had no worker ID from a registry since, set snowflake.registry=static again, with the number: "},
	} {
		c := embedded(shortDir(t))
		c.Snowflake.Registry, c.Snowflake.WorkerID = tt.registry, tt.number
		if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.DataDir, tt.file), []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := app.New(c, app.Options{}); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), tt.back) {
			t.Errorf("beside the file %s: %v; want ErrConflict with %q", tt.file, err, tt.back)
		}
	}
}

// TestRegistryAfterAStaticNumber is TestStaticNumberAfterARegistry the other way round: the number in the configuration is lost, or
// a rolling restart takes the nodes to a registry. It gives the numbers of those that still have a static one.
func TestRegistryAfterAStaticNumber(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	own := filepath.Join(c.DataDir, "worker.json")
	c.Snowflake.Registry, c.Snowflake.WorkerID = config.RegistryStatic, "7"
	_, stop := start(t, c)
	stop()
	c.Snowflake.Registry, c.Snowflake.WorkerID = config.RegistryAuto, ""
	if _, err := app.New(c, app.Options{}); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "static worker ID 7") || !strings.Contains(err.Error(), own) {
		t.Errorf("New: %v; want ErrConflict that names the number and the file", err)
	}
	static, err := os.ReadFile(own)
	if err == nil {
		err = os.Remove(own)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"no file": "", "another registry's": `{"registry":"zookeeper"}`, "a damaged one": "{"} {
		if content != "" {
			if err := os.WriteFile(own, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if a, err := app.New(c, app.Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := a.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	// The node has been in a registry since.
	for file, content := range map[string][]byte{own: static, filepath.Join(c.DataDir, "registry"): []byte("elsewhere\n")} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if a, err := app.New(c, app.Options{}); err != nil {
		t.Errorf("with the ID of a registry: %v", err)
	} else if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
