package app

import "github.com/leaf-idgen/leaf/driver/datadir"

// Undo is what New does after an error.
func Undo(dir *datadir.Dir, closers ...func() error) error {
	return (&App{dir: dir, closers: closers}).undo()
}
