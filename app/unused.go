package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/sqldb"
)

const (
	// workerFile is the node's own record of its claim, as package worker names it; a
	// test compares.
	workerFile = "worker.json"

	// unusedFile says that a command made the embedded database, and no node has
	// started on it since: nobody can have used a worker ID of it. Without it, a node
	// that starts after "leaf tag create" would wait as in an empty registry that may
	// have been wiped (rule D).
	unusedFile = "unused"
)

// prepareRegistry creates the tables of a registry in an SQLite store, as segment mode
// does, and reports whether this process made its file, while the data directory never
// had a worker ID. If the database was deleted under a directory that had one, others
// may still use it. The same holds for a file that other nodes may have: what is
// reported says something about the embedded database only.
func prepareRegistry(ctx context.Context, records *sqldb.Records, dir *datadir.Dir) (made bool, err error) {
	made, err = records.Prepare(ctx)
	if err != nil || !made {
		return false, err
	}
	return hasNo(dir, workerFile)
}

// markUnused leaves the word of a command for the first node.
func markUnused(ctx context.Context, records *sqldb.Records, dir *datadir.Dir) error {
	made, err := prepareRegistry(ctx, records, dir)
	if err != nil {
		return fmt.Errorf("prepare the registry of worker IDs: %w", err)
	}
	if !made {
		return nil
	}
	return dir.Replace(unusedFile, []byte("A command made leaf.db here; no node has started on it yet.\n"))
}

// takeUnused reads that word and removes it: it holds for one start, whatever comes
// of it.
func takeUnused(dir *datadir.Dir) (unused bool, err error) {
	if err := os.Remove(filepath.Join(dir.Path(), unusedFile)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return hasNo(dir, workerFile)
}

func hasNo(dir *datadir.Dir, name string) (bool, error) {
	_, err := dir.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}
