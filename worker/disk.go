package worker

import "io/fs"

// Disk is the node's own durable, locked folder, of which the engine uses one
// file, for a fixed number. Names are plain file names. The driver is driver/datadir.
// A panic counts as an error.
type Disk interface {
	// Occupy makes its caller the only one of this process that uses the file, until leave is
	// called. Error: leaf.ErrConflict beside another one: two Holders of one file would have
	// one number.
	Occupy(name string) (leave func(), err error)

	// ReadFile returns the content of name, or an error that matches
	// fs.ErrNotExist.
	ReadFile(name string) ([]byte, error)

	// Replace sets the content of name atomically and durably.
	Replace(name string, content []byte) error
}

// noDisk remembers nothing: a leased number needs no memory but T.
type noDisk struct{}

func (noDisk) Occupy(string) (func(), error) { return func() {}, nil }

func (noDisk) ReadFile(string) ([]byte, error) { return nil, fs.ErrNotExist }

func (noDisk) Replace(string, []byte) error { return nil }
