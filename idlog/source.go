package idlog

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Source is a log that [CheckSources] reads: once, and a second time if it found
// duplicates, to say where they came from. Both times it must yield the same bytes;
// a file that meanwhile grows is fine.
type Source struct {
	Name string
	Size int64 // in bytes, for estimates; 0 if unknown
	Open func() (io.ReadCloser, error)
}

// File returns the log in a file. Anything but a regular file is an error, since a pipe
// cannot be read twice.
func File(path string) (Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Source{}, err
	}
	if info.IsDir() {
		return Source{}, fmt.Errorf("idlog: %s: is a folder; name the files in it", path)
	}
	if !info.Mode().IsRegular() {
		return Source{}, fmt.Errorf("idlog: %s: is no regular file, and a log may have to be read twice; write it to a file first", path)
	}
	return Source{path, info.Size(), func() (io.ReadCloser, error) { return os.Open(path) }}, nil
}

// Bytes returns a log in memory.
func Bytes(name string, log []byte) Source {
	return Source{name, int64(len(log)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(log)), nil }}
}
