package sqldb_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
)

func TestSQLiteFile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"leaf.db", "50% off #1 数据 +x&y=z;.db", `a"b'c\d.db`} {
		path := filepath.Join(t.TempDir(), name)
		s := open(t, "sqlite:"+path)
		if _, err := s.Rows(t.Context()); !errors.Is(err, segment.ErrSchema) {
			t.Errorf("Rows without a file: %v; want ErrSchema", err)
		}
		if err := s.Verify(t.Context(), segment.Binding{Store: "default"}); !errors.Is(err, segment.ErrSchema) {
			t.Errorf("Verify without a file: %v; want ErrSchema", err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("reading made a file")
		}
		bind(t, s)
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
			t.Errorf("%s: %v, %v; want a file for its owner only", path, info, err)
		}
		var mode string
		if err := raw(t, strings.NewReplacer("%", "%25", "#", "%23", "?", "%3f", " ", "%20").Replace(path)).
			QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
			t.Errorf("journal_mode = %q, %v; want wal", mode, err)
		}
	}
}

func TestSQLiteNoFolder(t *testing.T) {
	t.Parallel()
	s := open(t, "sqlite:"+t.TempDir()+"/missing/leaf.db")
	if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Bind: %v; want ErrNotExist", err)
	}
}

func TestSQLiteNotADatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leaf.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, "sqlite:"+path)
	if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); err == nil {
		t.Error("Bind to a text file succeeded")
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "not a database") {
		t.Errorf("the file was changed: %v", err)
	}
}

const childVariable = "LEAF_TEST_SQLITE_CHILD"

// TestSQLiteProcesses: several processes share one file, two of them killed in
// between, and no range overlaps another.
func TestSQLiteProcesses(t *testing.T) {
	if path := os.Getenv(childVariable); path != "" {
		reserveForever(t, path)
		return
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leaf.db")
	const processes, each = 4, 150
	ranges := make(chan leaf.Range)
	ended := make(chan error)
	for i := range processes {
		go func() { ended <- child(t.Context(), path, i, each, ranges) }()
	}
	var all []leaf.Range
	for running := processes; running > 0; {
		select {
		case r := <-ranges:
			all = append(all, r)
		case err := <-ended:
			running--
			if err != nil {
				t.Error(err)
			}
		}
	}
	slices.SortFunc(all, func(a, b leaf.Range) int { return int(a.Lo - b.Lo) })
	for i := range all[1:] {
		if all[i+1].Lo < all[i].Hi {
			t.Fatalf("ranges %v and %v overlap", all[i], all[i+1])
		}
	}
	if len(all) < processes*each {
		t.Errorf("%d ranges, want %d", len(all), processes*each)
	}
}

// child runs this test in a process of its own until it has printed n ranges,
// and kills it.
func child(ctx context.Context, path string, number, n int, ranges chan<- leaf.Range) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSQLiteProcesses$")
	cmd.Env = append(os.Environ(), childVariable+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	got := 0
	for got < n && lines.Scan() {
		var r leaf.Range
		if _, err := fmt.Sscanf(lines.Text(), "range %d %d", &r.Lo, &r.Hi); err != nil {
			for text := lines.Text(); ; text += "\n" + lines.Text() {
				if !lines.Scan() {
					return fmt.Errorf("process %d says: %s", number, text)
				}
			}
		}
		ranges <- r
		got++
	}
	cancel()
	_ = cmd.Wait() // killed
	if got < n {
		return fmt.Errorf("process %d ended after %d ranges", number, got)
	}
	return nil
}

func reserveForever(t *testing.T, path string) {
	s, err := sqldb.Open("sqlite:"+path, sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Bind(ctx, segment.Binding{Store: "default"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(ctx, segment.NewRow{Tag: "tag", Start: 1, Step: 7}); err != nil && !errors.Is(err, leaf.ErrConflict) {
		t.Fatal(err)
	}
	for ctx.Err() == nil {
		res, err := s.Reserve(ctx, segment.Request{Tag: "tag", Step: 7, Length: 7, Min: 1, Max: 7})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(os.Stdout, "range", res.Range.Lo, res.Range.Hi)
	}
}
