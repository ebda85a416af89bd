package segment_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// disk is a fence.Disk in memory that outlives its allocators, as a data
// directory outlives processes. Hooks inject faults; a nil hook does nothing.
type disk struct {
	mu        sync.Mutex
	files     map[string][]byte
	onReplace func(name string) error
	onWrite   func() error
	onSync    func() error
	outside   func() error // before a sync or a replacement, without the lock: it may hang
}

func (d *disk) hang() error {
	d.mu.Lock()
	f := d.outside
	d.mu.Unlock()
	if f == nil {
		return nil
	}
	return f()
}

func newDisk() *disk { return &disk{files: map[string][]byte{}} }

// Occupy lets everyone in: a test ends an allocator without closing it.
func (d *disk) Occupy(string) (func(), error) { return func() {}, nil }

func (d *disk) ReadFile(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	content, ok := d.files[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return append([]byte(nil), content...), nil
}

// content returns what a file holds now, nil when there is none. A node that runs
// writes in the background, so a test never reads the map itself.
func (d *disk) content(name string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.files[name])
}

func (d *disk) Replace(name string, content []byte) error {
	if err := d.hang(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.onReplace != nil {
		if err := d.onReplace(name); err != nil {
			return err
		}
	}
	d.files[name] = append([]byte(nil), content...)
	return nil
}

func (d *disk) Append(name string) (fence.AppendFile, error) {
	if _, err := d.ReadFile(name); err != nil {
		return nil, err
	}
	return &file{d: d, name: name}, nil
}

// copy returns a disk with the same files.
func (d *disk) copy() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := maps.Clone(d.files)
	for name, content := range files {
		files[name] = slices.Clip(content) // an append to the one must not write into the other
	}
	return &disk{files: files}
}

func (d *disk) set(change func(*disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

type file struct {
	d      *disk
	name   string
	unsync []byte
}

func (f *file) Write(p []byte) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.onWrite != nil {
		if err := f.d.onWrite(); err != nil {
			return 0, err
		}
	}
	f.unsync = append(f.unsync, p...)
	return len(p), nil
}

func (f *file) Sync() error {
	if err := f.d.hang(); err != nil {
		return err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.onSync != nil {
		if err := f.d.onSync(); err != nil {
			return err
		}
	}
	f.d.files[f.name] = append(f.d.files[f.name], f.unsync...)
	f.unsync = nil
	return nil
}

func (f *file) Close() error { return nil }

// store decorates a store with faults. Each hook runs instead of the call and gets
// the call to make, or not, itself.
type store struct {
	*memory.Store
	mu        sync.Mutex
	reserves  int
	rows      func([]segment.Row) []segment.Row // what a reading of them returns
	onBind    func(ctx context.Context, do func() error) error
	onRows    func(ctx context.Context) error
	onLookup  func(ctx context.Context, tag string) error
	onReserve func(ctx context.Context, req segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error)
	onReturn  func(ctx context.Context, tag string, do func() error) error
	onNotices func() error
}

func newStore(rows ...segment.Row) *store {
	s := &store{Store: memory.New()}
	for _, r := range rows {
		s.Put(r)
	}
	return s
}

func (s *store) set(change func(*store)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserves
}

func (s *store) Bind(ctx context.Context, b segment.Binding) error {
	s.mu.Lock()
	hook := s.onBind
	s.mu.Unlock()
	do := func() error { return s.Store.Bind(ctx, b) }
	if hook != nil {
		return hook(ctx, do)
	}
	return do()
}

func (s *store) Rows(ctx context.Context) ([]segment.Row, error) {
	s.mu.Lock()
	hook, change := s.onRows, s.rows
	s.mu.Unlock()
	rows, err := s.Store.Rows(ctx)
	if change != nil {
		rows = change(rows)
	}
	if hook != nil {
		if err := hook(ctx); err != nil {
			return nil, err
		}
	}
	return rows, err
}

func (s *store) Lookup(ctx context.Context, tag string) (segment.Row, error) {
	s.mu.Lock()
	hook := s.onLookup
	s.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, tag); err != nil {
			return segment.Row{}, err
		}
	}
	return s.Store.Lookup(ctx, tag)
}

func (s *store) Reserve(ctx context.Context, req segment.Request) (segment.Reservation, error) {
	s.mu.Lock()
	s.reserves++
	hook := s.onReserve
	s.mu.Unlock()
	do := func() (segment.Reservation, error) { return s.Store.Reserve(ctx, req) }
	if hook != nil {
		return hook(ctx, req, do)
	}
	return do()
}

func (s *store) ReturnUnused(ctx context.Context, tag string, hi, lo int64) error {
	s.mu.Lock()
	hook := s.onReturn
	s.mu.Unlock()
	do := func() error { return s.Store.ReturnUnused(ctx, tag, hi, lo) }
	if hook != nil {
		return hook(ctx, tag, do)
	}
	return do()
}

func (s *store) Notices(ctx context.Context) ([]segment.Notice, error) {
	s.mu.Lock()
	hook := s.onNotices
	s.mu.Unlock()
	if hook != nil {
		if err := hook(); err != nil {
			return nil, err
		}
	}
	return s.Store.Notices(ctx)
}

var errDown = errors.New("connection refused")

// breakDown makes every call fail at once; heal ends it.
func (s *store) breakDown() {
	s.set(func(s *store) {
		s.onBind = func(context.Context, func() error) error { return errDown }
		s.onRows = func(context.Context) error { return errDown }
		s.onLookup = func(context.Context, string) error { return errDown }
		s.onReserve = func(context.Context, segment.Request, func() (segment.Reservation, error)) (segment.Reservation, error) {
			return segment.Reservation{}, errDown
		}
	})
}

func (s *store) heal() {
	s.set(func(s *store) {
		s.rows = nil
		s.onBind, s.onRows, s.onLookup, s.onReserve, s.onReturn, s.onNotices = nil, nil, nil, nil, nil, nil
	})
}

func (s *store) maxID(t testing.TB, tag string) int64 {
	t.Helper()
	row, err := s.Store.Lookup(t.Context(), tag)
	if err != nil {
		t.Fatal(err)
	}
	return row.MaxID
}

// row is a plain row of the tag that most tests use.
func row(step int64) segment.Row { return segment.Row{Tag: "order", MaxID: 1, Step: step} }

// node starts an allocator. Without a data directory of its own it gets a new one.
// It is closed when the test ends, if the test did not.
func node(t testing.TB, s segment.Store, d *disk, cfg segment.Config) *segment.Allocator {
	t.Helper()
	a := newNode(t, s, d, cfg)
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

func newNode(t testing.TB, s segment.Store, d *disk, cfg segment.Config) *segment.Allocator {
	t.Helper()
	if d == nil {
		d = newDisk()
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: s}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return newRouted(t, router, d, cfg)
}

// record records the tag rule in the stores that have none, as leaf schema apply does.
func record(router *segment.Router) {
	for i, s := range router.Stores() {
		if x, ok := s.Store.(interface{ RecordRule(b segment.Binding) error }); ok && router.Fingerprint() != "" {
			_ = x.RecordRule(router.Binding(i)) // another one may be there
		}
	}
}

func newRouted(t testing.TB, router *segment.Router, d *disk, cfg segment.Config) *segment.Allocator {
	t.Helper()
	if cfg.NodeID == "" {
		cfg.NodeID = "node-1"
	}
	if cfg.MaxWait == 0 {
		cfg.MaxWait = time.Minute // a busy machine must not fail a test that is not about waiting
	}
	record(router)
	a, err := segment.New(router, d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNode(t, a) })
	return a
}

func closeNode(t testing.TB, a *segment.Allocator) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := a.Close(ctx); err != nil {
		t.Error(err)
	}
}

// closeWithin returns what Close says in a limited time.
func closeWithin(t testing.TB, a *segment.Allocator, d time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return a.Close(ctx)
}

func next(t testing.TB, a leaf.Issuer, tag string) int64 {
	t.Helper()
	id, err := a.Next(t.Context(), tag)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// drain takes n IDs one by one.
func drain(t testing.TB, a leaf.Issuer, tag string, n int) []int64 {
	t.Helper()
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = next(t, a, tag)
	}
	return ids
}

// ledger notes IDs and fails the test at the first repeated one.
type ledger struct {
	mu   sync.Mutex
	seen map[int64]string
}

func newLedger() *ledger { return &ledger{seen: map[int64]string{}} }

func (l *ledger) add(t testing.TB, who string, ids ...int64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if before, ok := l.seen[id]; ok {
			t.Fatalf("ID %d issued by %s was issued before by %s", id, who, before)
		}
		l.seen[id] = who
	}
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen)
}

func increasing(t testing.TB, ids []int64) {
	t.Helper()
	for i := 1; i < len(ids); i++ {
		if ids[i] <= ids[i-1] {
			t.Fatalf("ID %d follows %d", ids[i], ids[i-1])
		}
	}
}

func wantErr(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error = %v, want %v", err, target)
	}
}
