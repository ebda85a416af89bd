package fence

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/leaf-idgen/leaf/internal/bounded"
)

// Guard returns d, whose panics it turns into errors: a program that embeds the engine brings a
// Disk of its own, and goroutines of the engine call it.
func Guard(d Disk, log *slog.Logger) Disk { return guarded{d, log} }

type guarded struct {
	disk Disk
	log  *slog.Logger
}

// call returns what f returns. The stack of a panic is for the log.
func call[T any](log *slog.Logger, what string, f func() (T, error)) (T, error) {
	value, err := bounded.Recover(what, f)
	if p, ok := errors.AsType[*bounded.PanicError](err); ok {
		log.Error("the disk of the fence panicked; the outcome of the call is unknown, and it counts as failed", "call", p.What, "panic", p.Cause, "stack", string(p.Stack))
		err = fmt.Errorf("panic in %s: %v", p.What, p.Cause)
	}
	return value, err
}

// do is call of what returns only an error.
func do(log *slog.Logger, what string, f func() error) error {
	_, err := call(log, what, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

func (g guarded) Occupy(name string) (func(), error) {
	return call(g.log, "Disk.Occupy", func() (func(), error) { return g.disk.Occupy(name) })
}

func (g guarded) ReadFile(name string) ([]byte, error) {
	return call(g.log, "Disk.ReadFile", func() ([]byte, error) { return g.disk.ReadFile(name) })
}

func (g guarded) Replace(name string, content []byte) error {
	return do(g.log, "Disk.Replace", func() error { return g.disk.Replace(name, content) })
}

func (g guarded) Append(name string) (AppendFile, error) {
	f, err := call(g.log, "Disk.Append", func() (AppendFile, error) { return g.disk.Append(name) })
	if err != nil {
		return nil, err
	}
	return guardedFile{f, g.log}, nil
}

type guardedFile struct {
	file AppendFile
	log  *slog.Logger
}

func (g guardedFile) Write(p []byte) (int, error) {
	return call(g.log, "AppendFile.Write", func() (int, error) { return g.file.Write(p) })
}

func (g guardedFile) Sync() error { return do(g.log, "AppendFile.Sync", g.file.Sync) }

func (g guardedFile) Close() error { return do(g.log, "AppendFile.Close", g.file.Close) }
