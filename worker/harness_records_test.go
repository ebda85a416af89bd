package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// records is a pool's storage with faults.
type records struct {
	kind worker.Kind

	mu      sync.Mutex
	ns      *worker.StoredNamespace
	byNum   map[int64]worker.Record
	peers   map[string]worker.Peer
	version int
	down    error           // every call fails
	off     map[string]bool // addresses whose writes fail
	lose    int             // so many writes succeed without an answer
	unread  int             // so many times the list of peers cannot be read
	listed  error           // of List
	slow    time.Duration   // reading it takes so long
}

func newRecords(kind worker.Kind) *records {
	return &records{kind: kind, byNum: map[int64]worker.Record{}, peers: map[string]worker.Peer{}, off: map[string]bool{}}
}

func (r *records) set(f func(*records)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r)
}

func (r *records) cut(address string, off bool) { r.set(func(r *records) { r.off[address] = off }) }

// breakOff makes all calls fail, or none.
func (r *records) breakOff(off bool) {
	r.set(func(r *records) {
		if r.down = nil; off {
			r.down = errors.New("connection refused")
		}
	})
}

func (r *records) record(n int64) worker.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byNum[n]
}

// writes counts the writes that changed something.
func (r *records) writes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version
}

// used counts the numbers with a record.
func (r *records) used() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byNum)
}

func (r *records) Info() worker.Info { return worker.Info{Name: "test", Kind: r.kind, Shared: true} }

func (r *records) Namespace(_ context.Context, want *worker.StoredNamespace) (*worker.StoredNamespace, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ns == nil && want != nil && r.down == nil {
		r.version++
		created := *want
		created.Incarnation = fmt.Sprint("incarnation ", r.version)
		r.ns = &created
	}
	return r.ns, r.down
}

func (r *records) Amend(_ context.Context, old, next worker.StoredNamespace) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.down != nil:
		return r.down
	case r.ns == nil || *r.ns != old:
		return worker.ErrLost
	}
	r.ns = &next
	return nil
}

func (r *records) Reserved(context.Context) ([]worker.Adoptable, error) { return nil, nil }

func (r *records) List(context.Context) ([]worker.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []worker.Record
	for _, rec := range r.byNum {
		all = append(all, rec)
	}
	return all, errors.Join(r.down, r.listed)
}

func (r *records) Put(_ context.Context, rec worker.Record) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.down != nil:
		return "", r.down
	case r.off[rec.Address]:
		return "", errors.New("connection reset")
	case r.byNum[rec.Number].Version != rec.Version:
		return "", worker.ErrLost
	case rec.Incarnation != "" && (r.ns == nil || r.ns.Incarnation != rec.Incarnation):
		return "", worker.ErrLost
	case rec.Incarnation != "" && rec.Version == "":
		given := *r.ns
		given.Given++
		r.ns = &given
	}
	rec.Incarnation = ""
	r.version++
	rec.Version = fmt.Sprint(r.version)
	r.byNum[rec.Number] = rec
	if r.lose > 0 {
		r.lose--
		return "", errors.New("connection reset after the write")
	}
	return rec.Version, nil
}

func (r *records) Announce(_ context.Context, p worker.Peer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.peers[p.Address] = p
	return r.down
}

func (r *records) Withdraw(_ context.Context, p worker.Peer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.peers, p.Address)
	return r.down
}

func (r *records) Peers(ctx context.Context) ([]worker.Peer, error) {
	r.mu.Lock()
	slow := r.slow
	r.mu.Unlock()
	if slow > 0 { // 0 would wait without an end
		if err := leaf.SystemRuntime().Wait(ctx, nil, slow); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unread > 0 {
		r.unread--
		return nil, errors.New("too many connections")
	}
	var all []worker.Peer
	for _, p := range r.peers {
		all = append(all, p)
	}
	return all, r.down
}

func (r *records) Close() error { return nil }

// island is the way of one node to the registry. While it is off, no call gets through.
type island struct {
	*records

	off atomic.Bool
}

func (i *island) reach() error {
	if i.off.Load() {
		return errors.New("no route to host")
	}
	return nil
}

func (i *island) Namespace(ctx context.Context, want *worker.StoredNamespace) (*worker.StoredNamespace, error) {
	if err := i.reach(); err != nil {
		return nil, err
	}
	return i.records.Namespace(ctx, want)
}

func (i *island) List(ctx context.Context) ([]worker.Record, error) {
	if err := i.reach(); err != nil {
		return nil, err
	}
	return i.records.List(ctx)
}

func (i *island) Put(ctx context.Context, r worker.Record) (string, error) {
	if err := i.reach(); err != nil {
		return "", err
	}
	return i.records.Put(ctx, r)
}

// namespace returns what is stored.
func (r *records) namespace() worker.StoredNamespace {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *r.ns
}
