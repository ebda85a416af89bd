package segment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/segment/fence"
)

var _ leaf.Issuer = (*Allocator)(nil)

// Allocator issues the IDs of all tags of a node. Make it with New, call Start,
// and Close it. All methods are safe for concurrent use.
type Allocator struct {
	cfg    Config
	rt     leaf.Runtime
	log    *slog.Logger
	router *Router
	disk   fence.Disk
	pace   livePace
	fence  *fence.Fence
	alarms leaf.Alarms

	table   atomic.Pointer[table]
	shards  []*shard
	drained *chunk // what tags without stock point to; it has no IDs

	tasks    *bounded.Group
	watches  *bounded.Group  // looks at the boards, which go on while Close waits for tasks
	base     context.Context //nolint:containedctx // parent of loads, cancelled at the end of Close
	cancel   context.CancelFunc
	running  context.Context //nolint:containedctx // parent of syncs, cancelled when Close begins
	stop     context.CancelFunc
	watching context.Context //nolint:containedctx // parent of looks at the boards, cancelled when Close takes the tails
	unwatch  context.CancelFunc
	closed   chan struct{} // closed when Close has ended
	began    atomic.Bool   // by Start
	retired  atomic.Bool   // ranges were returned; later ones are dropped

	counters counters
	drops    sync.Map // of *Drops, by tag
	misfits  misfits

	// mu guards the writers of table and what follows. Order of locks: mu, then
	// Tag.mu, then queue.mu, then shard.mu; those of a.fence, the groups and the alarms come
	// last.
	mu      sync.Mutex
	pending map[string]*Tag      // tags that the store will be asked about
	misses  map[string]time.Time // unknown tags, until when
	known   map[string]evidence  // of tags that have left the table
	recent  map[string]int64     // tags to preload with their last use, as read from the disk
	saved   string               // the list as last written, to skip equal writes
}

// New reads the fence file from disk and prepares an Allocator; it does not touch
// the stores. The disk must be the node's own and locked: two processes, or two
// Allocators of one process, that share one would overwrite each other's fences.
// driver/datadir refuses both: leaf.ErrConflict. Several databases are the stores of one
// Router.
func New(router *Router, disk fence.Disk, cfg Config) (*Allocator, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	a := &Allocator{
		cfg:     cfg,
		rt:      cfg.Runtime,
		log:     cfg.Logger,
		router:  router,
		disk:    fence.Guard(disk, cfg.Logger),
		alarms:  cfg.Alarms,
		drained: newChunk(leaf.Range{}, nil),
		tasks:   bounded.NewGroup(cfg.Runtime),
		watches: bounded.NewGroup(cfg.Runtime),
		closed:  make(chan struct{}),
		pending: make(map[string]*Tag),
		misses:  make(map[string]time.Time),
		known:   make(map[string]evidence),
		misfits: misfits{tags: make(map[string]error)},
	}
	first := cfg.pace()
	a.pace.Store(&first)
	if a.alarms == nil {
		a.alarms = &logged{alloc: a, active: map[[2]string]bool{}}
	}
	var err error
	if a.fence, err = fence.Open(a.fenceConfig()); err != nil {
		return nil, err
	}
	for tag, m := range a.fence.All() {
		if m.Latched {
			a.alarms.Raise(latchedAlarm(tag, m))
		}
	}
	a.base, a.cancel = context.WithCancel(context.Background())
	a.running, a.stop = context.WithCancel(a.base)
	a.watching, a.unwatch = context.WithCancel(a.base)
	a.table.Store(&table{})
	for i, s := range router.Stores() {
		a.shards = append(a.shards, newShard(a, i, s))
	}
	a.recent = a.readRecent()
	return a, nil
}

func (a *Allocator) fenceConfig() fence.Config {
	return fence.Config{
		Disk: a.disk, Node: a.cfg.NodeID, Runtime: a.rt, Logger: a.log, Alarms: a.alarms, Go: a.tasks.Start,
		Cluster: a.cfg.ClusterFence, ClusterName: a.cfg.ClusterFenceName, ClusterID: a.cfg.ClusterID, Degrade: a.cfg.Degrade,
		Timeout: a.cfg.LoadTimeout, MaxCalls: a.cfg.MaxLoads, Abandoned: &a.counters.abandoned,
	}
}

// Start makes first contact with every database, one attempt each, and begins to
// follow them. It returns permanent errors only (ErrSchema, ErrRule, *ClusterError, leaf.ErrConflict), and that of a
// ctx that ends before the first contact; after an error the Allocator must be closed. A database that cannot be
// reached is tried again in the background, and until then its tags answer leaf.ErrNotReady. A second call is
// leaf.ErrConflict.
func (a *Allocator) Start(ctx context.Context) error {
	if a.began.Swap(true) {
		return fmt.Errorf("%w: the allocator was started before", leaf.ErrConflict)
	}
	a.fence.Start()
	results := make([]error, len(a.shards))
	contacted := make(chan struct{})
	var left atomic.Int64
	left.Store(int64(len(a.shards)))
	for i, s := range a.shards {
		// Among the tasks, so that Close waits for one that outlives ctx.
		if !a.tasks.Start(func() {
			results[i] = s.sync()
			close(s.contacted)
			if left.Add(-1) == 0 {
				close(contacted)
			}
		}) {
			return fmt.Errorf("%w: closed", leaf.ErrNotReady)
		}
	}
	if err := a.rt.Wait(ctx, contacted, 0); err != nil {
		return fmt.Errorf("first contact with the stores: %w", err)
	}
	var permanent error
	for i, err := range results {
		other, isOther := errors.AsType[*ClusterError](err)
		switch {
		case isOther:
			err = fmt.Errorf("%w; %s", err, clusterAdvice(other))
		case errors.Is(err, ErrRule):
			err = fmt.Errorf("%w; if this node's rule is right, %s", err, MoveRows("run, with the settings of this node: leaf schema apply --accept-rule"))
		}
		if isOther || errors.Is(err, ErrSchema) || errors.Is(err, ErrRule) || errors.Is(err, leaf.ErrConflict) {
			permanent = errors.Join(permanent, fmt.Errorf("store %q: %w", a.shards[i].name, err))
		}
	}
	if permanent != nil {
		return permanent
	}
	for i, s := range a.shards {
		a.tasks.Start(func() { s.follow(results[i] == nil) })
	}
	a.tasks.Start(a.keepRecent)
	return nil
}

// Next implements leaf.Issuer.
func (a *Allocator) Next(ctx context.Context, tag string) (int64, error) {
	t := a.tag(tag)
	if t == nil {
		var err error
		if t, err = a.find(tag); err != nil {
			return 0, err
		}
	}
	return t.Next(ctx)
}

// NextN implements leaf.Issuer.
func (a *Allocator) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	t, err := a.find(tag)
	if err != nil {
		return nil, err
	}
	return t.NextN(ctx, n)
}

// Tag returns a handle. It never fails and never waits: whether the tag exists
// shows at the first ID.
func (a *Allocator) Tag(name string) *Tag {
	if t := a.tag(name); t != nil {
		return t
	}
	t := &Tag{name: name, alloc: a, state: detached}
	t.cur.Store(a.drained)
	return t
}

// ClusterEnd returns the highest end of the tag's ranges that the cluster fence holds, 0 if it
// holds none or there is no cluster fence. Error: leaf.ErrNotReady while it does not answer.
func (a *Allocator) ClusterEnd(ctx context.Context, tag string) (int64, error) {
	if !a.fence.HasCluster() {
		return 0, nil
	}
	e, _, _, err := a.fence.ClusterEntry(ctx, tag)
	if err != nil {
		return 0, storeError(err)
	}
	return e.End, nil
}

func (a *Allocator) isClosing() bool { return a.running.Err() != nil }

func (a *Allocator) isRetired() bool { return a.retired.Load() }
