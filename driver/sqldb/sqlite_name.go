package sqldb

import (
	"fmt"
	"io/fs"

	"github.com/leaf-idgen/leaf"
)

// oneName returns leaf.ErrConflict if the database file may have another name. SQLite finds the -wal
// and the -shm by the name of the file: two processes that open it by two names do not see one
// another's locks and last writes, take the same ranges and worker IDs, and destroy the file.
func oneName(path string, info fs.FileInfo) error {
	switch names, mounted := otherNames(path, info); {
	case info.Mode().Type() == fs.ModeSymlink:
		return fmt.Errorf("%w: %s is a symbolic link, and SQLite keeps the -wal beside its target: name the target in store", leaf.ErrConflict, path)
	case names > 1:
		return fmt.Errorf("%w: %s has %d names (hard links), and nodes that open it by two of them repeat IDs: stop every process that opens it by another name, and remove that name; find -samefile lists them",
			leaf.ErrConflict, path, names)
	case mounted:
		return fmt.Errorf("%w: %s is a mount of a single file, and nodes that open it by two names repeat IDs: stop every process that uses the file, and mount its folder instead", leaf.ErrConflict, path)
	}
	return nil
}
