package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf/discovery"
)

// Directory is a directory of nodes in memory. Use NewDirectory, and Open for further
// handles on the same entries. All methods are safe for concurrent use and never block.
type Directory struct {
	shared *nodes
	closed atomic.Bool
}

// nodes are the entries that all handles share.
type nodes struct {
	now    func() time.Time
	reader *discovery.Reader

	mu      sync.Mutex
	entries map[string]nodeEntry // by ID
}

type nodeEntry struct {
	text    string
	expires time.Time
}

var _ discovery.Directory = (*Directory)(nil)

// errDirectoryClosed is returned by calls after Close.
var errDirectoryClosed = errors.New("memory: the directory is closed")

// NewDirectory returns an empty directory whose entries end by the clock now; nil:
// time.Now.
func NewDirectory(now func() time.Time) *Directory {
	if now == nil {
		now = time.Now
	}
	return &Directory{shared: &nodes{now: now, reader: discovery.NewReader(nil), entries: map[string]nodeEntry{}}}
}

// Open returns another handle, as another process has it.
func (d *Directory) Open() *Directory { return &Directory{shared: d.shared} }

// Plant writes text as the entry of id, past the rules, as another program would.
func (d *Directory) Plant(id, text string) {
	d.shared.mu.Lock()
	defer d.shared.mu.Unlock()
	d.shared.entries[id] = nodeEntry{text, d.shared.now().Add(discovery.MaxTTL)}
}

// Put implements discovery.Directory.
func (d *Directory) Put(ctx context.Context, n discovery.Node, ttl time.Duration) error {
	if err := discovery.CheckPut(n, ttl); err != nil {
		return err
	}
	return d.with(ctx, "put node "+n.ID, func(entries map[string]nodeEntry, now time.Time) {
		entries[n.ID] = nodeEntry{n.Encode(), now.Add(ttl)}
	})
}

// Remove implements discovery.Directory.
func (d *Directory) Remove(ctx context.Context, id string) error {
	if err := discovery.CheckID(id); err != nil {
		return err
	}
	return d.with(ctx, "remove node "+id, func(entries map[string]nodeEntry, _ time.Time) { delete(entries, id) })
}

// List implements discovery.Directory.
func (d *Directory) List(ctx context.Context) ([]discovery.Node, error) {
	var found []discovery.Entry
	err := d.with(ctx, "list the nodes", func(entries map[string]nodeEntry, now time.Time) {
		for id, e := range entries {
			if now.Before(e.expires) {
				found = append(found, discovery.Entry{Place: id, ID: id, Text: []byte(e.text)})
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return d.shared.reader.Nodes(found), nil
}

// with runs do under the lock, if the handle is open.
func (d *Directory) with(ctx context.Context, step string, do func(entries map[string]nodeEntry, now time.Time)) error {
	err := ctx.Err()
	if d.closed.Load() {
		err = errDirectoryClosed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	d.shared.mu.Lock()
	defer d.shared.mu.Unlock()
	do(d.shared.entries, d.shared.now())
	return nil
}

// Close implements discovery.Directory. Other handles stay open.
func (d *Directory) Close() error {
	d.closed.Store(true)
	return nil
}
