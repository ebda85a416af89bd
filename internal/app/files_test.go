package app_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// TestFileOfAnotherRegistryIsNotMissed: a node whose number is leased has no worker.json. One that is left from the time
// before, when the number was fixed, may be removed.
func TestFileOfAnotherRegistryIsNotMissed(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	left := filepath.Join(dir, "worker.json")
	if err := os.WriteFile(left, []byte("of before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	node, _ := start(t, embedded(dir))
	if err := os.Remove(left); err != nil {
		t.Fatal(err)
	}
	if err := app.LostFile(node); err != nil {
		t.Errorf("the node misses the file: %v", err)
	}
}

// TestLostFileStopsTheNode (rule Q): after the loss of a file that unique IDs rest on
// neither mode issues, and nothing that comes back changes that. The node looks four times
// a second, so that this takes less than a second on a machine that is not overloaded.
func TestLostFileStopsTheNode(t *testing.T) {
	t.Parallel()
	if app.WatchPause > 300*time.Millisecond {
		t.Errorf("the node looks every %v, too rarely to stop within a second", app.WatchPause)
	}
	for _, name := range []string{"lock", "node.json", "fence", "fence-end", "leaf.db", "leaf.db-wal", "leaf.db-shm", ""} {
		t.Run("file="+name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(shortDir(t), "d")
			a, err := app.New(embedded(dir), app.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = a.Stop(context.Background()) }) // it says that nothing can be written any more
			if err := a.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			paths := []string{"/api/segment/get/leaf-segment-test", "/api/snowflake/get/any"}
			for _, path := range paths {
				awaitStatus(t, a, path, 200)
			}
			file := filepath.Join(dir, name)
			if err := os.Rename(file, file+"-away"); err != nil {
				t.Fatal(err)
			}
			// A 503 can come before the alarm: a load may fail before the node looks at its files.
			until(t, "an alarm names the file", func() bool {
				info, err := manage.Ask(t.Context(), a.Backend(), manage.GetInfo{})
				text := strings.Join(info.Reasons, "\n")
				return err == nil && !info.Ready && strings.Contains(text, "alarm file") && strings.Contains(text, file)
			})
			for _, path := range paths {
				awaitStatus(t, a, path, 503)
				switch _, body := get(t, a, path); {
				case strings.Contains(body, dir):
					t.Errorf("%s: %q tells a client the path", path, body)
				case !strings.Contains(body, "lost a file"):
					t.Errorf("%s: %q does not say why", path, body)
				}
			}
			if _, err := manage.Ask(t.Context(), a.Backend(), manage.Next{Tag: "leaf-segment-test", N: 1}); !errors.Is(err, leaf.ErrNotReady) {
				t.Errorf("the administrator's Next: %v; want ErrNotReady", err)
			}
			if _, err := manage.Ask(t.Context(), a.Backend(), manage.NextSnowflake{N: 1}); !errors.Is(err, leaf.ErrNotReady) {
				t.Errorf("the administrator's NextSnowflake: %v; want ErrNotReady", err)
			}
			if err := os.Rename(file+"-away", file); err != nil {
				t.Fatal(err)
			}
			time.Sleep(600 * time.Millisecond) // more than two looks
			if status, _ := get(t, a, paths[0]); status != 503 {
				t.Errorf("got %d after the file came back; another process may have used what was there", status)
			}
		})
	}
}

// withLog makes a node that is not started, and what it logs.
func withLog(t *testing.T, dir string) (*app.App, *lockedBuffer) {
	t.Helper()
	log := &lockedBuffer{}
	a, err := app.New(embedded(dir), app.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop(context.Background()) }) // it may say that nothing can be written any more
	return a, log
}

// TestLostFileWhileTheNodeStarts: the first look finds the loss after the first contact with the
// database. That fails for want of the file, but its cure, an empty database, would begin at 1 again.
func TestLostFileWhileTheNodeStarts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "leaf.db"} {
		t.Run("file="+name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(shortDir(t), "d")
			a, log := withLog(t, dir)
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			err := a.Start(t.Context())
			if err == nil || !strings.Contains(err.Error(), "was deleted") || strings.Contains(err.Error(), "schema apply") {
				t.Errorf("the node ends with: %v", err)
			}
			until(t, "an alarm tells of the loss", func() bool { return strings.Contains(log.String(), "this node issues no IDs any more") })
		})
	}
}

// TestDemoTagAfterALossAsTheAlarmSays: the data directory was deleted, with all numbers of the
// demo tag. The first command makes that tag again, so it cannot be created; the alarm names
// the command that moves it above the numbers that were issued.
func TestDemoTagAfterALossAsTheAlarmSays(t *testing.T) {
	t.Parallel()
	const tag, number = "leaf-segment-test", int64(5000)
	c := embedded(filepath.Join(shortDir(t), "d"))
	command := func(do func(b manage.Backend) error) error {
		b, done, err := app.Open(t.Context(), c, app.Options{}, false, app.Stores)
		if err != nil {
			t.Fatal(err)
		}
		err = do(b)
		if err := done(); err != nil {
			t.Fatal(err)
		}
		return err
	}
	alarm := app.LostAlarm(errors.New("the data directory was deleted"))
	if !strings.Contains(alarm.Do, "leaf tag create TAG --start NUMBER, or, if it says that the tag exists: leaf tag set TAG --max-id NUMBER, with") {
		t.Errorf("the alarm says: %s", alarm.Do)
	}
	err := command(func(b manage.Backend) error {
		_, err := manage.Ask(t.Context(), b, manage.CreateTag{NewRow: segment.NewRow{Tag: tag, Start: number, Step: 100}})
		return err
	})
	if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "the tag exists") {
		t.Fatalf("create: %v", err)
	}
	err = command(func(b manage.Backend) error {
		to := number
		_, err := manage.Ask(t.Context(), b, manage.SetTag{Name: tag, Change: segment.Change{MaxID: &to}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	node, _ := start(t, c)
	if status, body := get(t, node, "/api/segment/get/"+tag); status != 200 || body != fmt.Sprint(number) {
		t.Errorf("got %d %s; want %d", status, body, number)
	}
}

// TestLostFileTextCountsWhatIsUnderWay: an operator who types what the alarm says does not
// repeat an ID that no table has yet.
func TestLostFileTextCountsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(shortDir(t), "d")
	a, log := withLog(t, dir)
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, a, "/api/segment/get/leaf-segment-test", 200)
	if err := os.Remove(filepath.Join(dir, "leaf.db")); err != nil {
		t.Fatal(err)
	}
	// A 503 can come before the alarm: a load may fail before the node looks at its files.
	until(t, "the alarm asks for a number that counts IDs which no table has yet", func() bool {
		text := log.String()
		return strings.Contains(text, "--start NUMBER") && strings.Contains(text, "plus three times the largest range") && strings.Contains(text, "plus what clients hold") &&
			strings.Contains(text, "with the options that the tag had") // a tag in strict order that is made without them is in plain order
	})
}
