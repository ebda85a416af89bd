package fence

import "io"

// Disk is the node's own durable folder. The engine keeps the fence in two files there,
// what it knows of the cluster fence and the list of recent tags; it reaches no other file. A name is a plain
// file name without separators. All methods are safe for concurrent use on
// different names. A panic counts as an error.
type Disk interface {
	// Occupy reserves the file for its caller, within this process, until leave is called. Error:
	// leaf.ErrConflict while the file is reserved: each of two Fences on one file would overwrite
	// the marks of the other.
	Occupy(name string) (leave func(), err error)

	// ReadFile returns the content of name, or an error that matches
	// fs.ErrNotExist if it was never written. A disk that knows that the fence was
	// written and is gone returns another error, so that the engine does not take the
	// node for a new one.
	ReadFile(name string) ([]byte, error)

	// Replace sets the content of name atomically and durably: after a crash at
	// any moment the file is the old one or the new one, whole, and after a nil
	// error it is the new one (write to a temporary file, fsync, rename, fsync the
	// folder).
	Replace(name string, content []byte) error

	// Append opens an existing file for appending. The engine closes it before it replaces the
	// file or opens it anew.
	Append(name string) (AppendFile, error)
}

// AppendFile is a file that only grows. After an error of Write or Sync its content is
// unknown: the caller closes it and writes it anew with Replace.
type AppendFile interface {
	io.Writer
	Sync() error // returns when everything written is durable
	io.Closer
}
