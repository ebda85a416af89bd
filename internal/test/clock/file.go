package clock

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// variable names the file to the program.
const variable = "LEAF_TEST_CLOCK"

// File is the offset of one clock, which one or more programs run by. It is safe
// for concurrent use.
type File struct {
	path string

	mu   sync.RWMutex
	page []byte // shared with the programs; nil when closed
}

// Open opens the clock at path, and makes one with the offset 0 if there is
// none. The offset stays in the file: a program that starts again finds it.
func Open(path string) (*File, error) {
	const length = 8
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open clock: %w", err)
	}
	defer f.Close() // the mapping outlives it
	if err := f.Truncate(length); err != nil {
		return nil, fmt.Errorf("open clock: %w", err)
	}
	page, err := syscall.Mmap(int(f.Fd()), 0, length, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map clock %s: %w", path, err)
	}
	return &File{path: path, page: page}, nil
}

// Env returns the line for the environment of a program that is to run by this
// clock.
func (f *File) Env() string { return variable + "=" + f.path }

// Set moves the wall clock to the true time plus offset; a negative one lies in
// the past. It counts from the return on. After Close it does nothing.
func (f *File) Set(offset time.Duration) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.page != nil {
		atomic.StoreInt64(f.word(), int64(offset))
	}
}

// Add moves the wall clock by step from where it is. After Close it does nothing.
func (f *File) Add(step time.Duration) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.page != nil {
		atomic.AddInt64(f.word(), int64(step))
	}
}

// Offset returns how far the clock is from the true time, 0 after Close.
func (f *File) Offset() time.Duration {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.page == nil {
		return 0
	}
	return time.Duration(atomic.LoadInt64(f.word()))
}

// Close ends the use of the file; programs that run by it go on. It is
// idempotent.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.page == nil {
		return nil
	}
	page := f.page
	f.page = nil
	if err := syscall.Munmap(page); err != nil {
		return errors.Join(fmt.Errorf("unmap clock %s", f.path), err)
	}
	return nil
}

// word is the offset itself; a mapping begins at a page, so it is aligned.
func (f *File) word() *int64 { return (*int64)(unsafe.Pointer(&f.page[0])) }
