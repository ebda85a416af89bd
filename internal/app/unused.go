package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/sqldb"
)

const (
	// madeFile says that leaf.db was made in this data directory. If it is not there
	// any more, it was deleted, and others may still use it.
	madeFile = "made"

	// unusedFile says that a command made the embedded database, and no node has
	// started on it since: no worker ID of it can be in use. Without it, a node
	// that starts after "leaf tag create" would wait as in an empty registry that may
	// have been wiped (rule D). It holds the cluster's ID of that database: a copy of
	// another one may have taken its place.
	unusedFile = "unused"
)

// firstMade is called before leaf.db is made, and reports whether it never was in this
// data directory. missing is its path if it is missing and must not be made again: another node
// may have shared it, and have taken numbers that this one does not know. Errors: those of
// checkEmbedded and checkLost.
func firstMade(dir *datadir.Dir, missing string) (first bool, err error) {
	if err := checkEmbedded(dir); err != nil {
		return false, err
	}
	if err := checkLost(dir, embeddedName, missing, makeAgain(dir)); err != nil {
		return false, err
	}
	if first, err = hasNo(dir, madeFile); err != nil || !first {
		return false, err
	}
	if err := dir.Replace(madeFile, []byte("leaf.db was made here. If it is gone, other nodes may still use it, and this one waits.\n")); err != nil {
		return false, err
	}
	return true, nil
}

// markUnused prepares the registry. If the command has made it and first is true, as firstMade
// returned, it leaves the file unused: no node has started on the registry yet.
func markUnused(ctx context.Context, records *sqldb.Records, dir *datadir.Dir, first bool) error {
	made, err := records.Prepare(ctx)
	if err != nil {
		return fmt.Errorf("prepare the registry of worker IDs: %w", err)
	}
	if !made || !first {
		return nil
	}
	id, err := records.ClusterID(ctx)
	if err != nil {
		return fmt.Errorf("prepare the registry of worker IDs: %w", err)
	}
	return dir.Replace(unusedFile, []byte(id+"\n"))
}

// prepareRegistry makes leaf.db for a command about worker IDs, if it is not there.
func prepareRegistry(ctx context.Context, dir *datadir.Dir, records *sqldb.Records) error {
	first, err := firstMade(dir, records.MissingFile())
	if err != nil {
		return err
	}
	return markUnused(ctx, records, dir, first)
}

// takeUnused removes the file unused and returns the ID of the database in it, "" if it was not
// there. The file is valid for one start, also if that start fails.
func takeUnused(dir *datadir.Dir) (id string, err error) {
	content, err := dir.ReadFile(unusedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(content)), os.Remove(filepath.Join(dir.Path(), unusedFile))
}

func hasNo(dir *datadir.Dir, name string) (bool, error) {
	_, err := dir.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}
