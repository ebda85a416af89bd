package fence

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
)

// Config is what a Fence needs. All fields but Cluster, ClusterID and Degrade must be set.
type Config struct {
	Disk    Disk
	Node    string // identity of the data directory
	Runtime leaf.Runtime
	Logger  *slog.Logger
	Alarms  leaf.Alarms

	// Go runs a task in a goroutine of its own, or returns false because the engine ends.
	Go func(task func()) bool

	Cluster     Cluster // nil: none
	ClusterName string  // for texts

	// ClusterID returns the ID of the cluster that the node belongs to, "" if it has none for now. An error means that it is not
	// known yet, and that no range can be taken either. nil: the node does not ask whose the cluster fence is.
	ClusterID func(ctx context.Context) (string, error)

	Degrade bool // ranges are taken without the cluster fence while it does not answer

	Timeout   time.Duration // of each call of Cluster
	MaxCalls  int           // of Cluster at once
	Abandoned *atomic.Int64 // counts calls that outlived their deadline
}

// Fence is what one node knows of the ranges that were reserved: its own marks, in memory
// and on its disk, and its side of the cluster fence. All methods are safe for concurrent
// use.
type Fence struct {
	cfg     Config
	cluster *cluster // nil: there is none

	running context.Context //nolint:containedctx // until Stop
	stop    context.CancelFunc

	mu      sync.Mutex
	marks   map[string]Mark
	latched int            // tags that are latched
	repairs int            // how many this node has carried out, see Look
	looks   int            // how many have begun
	refused map[string]int // the number of looks when a range of the tag was refused last
	said    map[string]int // how often this node said what it holds of the tag, see Say

	returning map[string]int64 // where tails end whose return may still reach the database

	// own is where this node's ranges of a tag end. It has only the tags whose mark is
	// higher than that, because the node heard of a repair or a regress. For all other
	// tags the mark is the end of the node's own ranges.
	own     map[string]int64
	broken  bool          // the last write failed
	mending bool          // a task tries it again
	hangs   bool          // a write takes longer than slowDisk
	closed  bool          // nothing is written any more
	open    *batch        // collecting, nil if none
	loose   []entry       // set in memory, written with the next batch
	last    chan struct{} // done channel of the newest batch, closed once it is written

	leave func() // ends the use of the files

	// The leader alone touches these; the done channels order one leader after
	// another.
	file     AppendFile // nil: the next write replaces both files
	end      AppendFile // of the file that says how many lines there are
	lines    int64      // of all that was ever written
	appended int        // bytes since the files were last replaced
	whole    int        // bytes of the file when it was last replaced
}

// Open reads the fence files from the disk, or makes them. Error: leaf.ErrConflict for
// files that must not be used, with what the administrator does, or that another Fence uses
// which is not closed.
func Open(cfg Config) (_ *Fence, err error) {
	f := &Fence{
		cfg:   cfg,
		marks: map[string]Mark{}, refused: map[string]int{}, said: map[string]int{}, own: map[string]int64{},
		returning: map[string]int64{},
	}
	if f.leave, err = cfg.Disk.Occupy(fileName); err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	defer func() {
		if err != nil {
			f.leave()
		}
	}()
	f.running, f.stop = context.WithCancel(context.Background())
	if err := f.read(); err != nil {
		return nil, err
	}
	// Always written anew: that drops a torn line and old marks, and shows at the
	// start that the disk can be written.
	if err := f.replace(); err != nil {
		return nil, err
	}
	f.last = make(chan struct{})
	close(f.last)
	if err := f.openCluster(); err != nil {
		return nil, errors.Join(err, f.Close(context.Background()))
	}
	return f, nil
}

// Start begins to keep the cluster fence open, until Stop.
func (f *Fence) Start() {
	if f.cluster != nil {
		f.cfg.Go(f.cluster.follow)
	}
}

// Stop ends what runs in the background. Loads that have begun go on.
func (f *Fence) Stop() { f.stop() }

// Close lets the write that is under way end, as long as ctx allows, and forbids
// every later one. What an earlier write failed to make durable, a latch perhaps, is
// tried once more.
func (f *Fence) Close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	last := f.last
	f.mu.Unlock()
	if err := f.cfg.Runtime.Wait(ctx, last, 0); err != nil {
		return fmt.Errorf("close the fence file: %w", err)
	}
	f.mu.Lock()
	broken := f.broken || len(f.loose) > 0
	f.mu.Unlock()
	return bounded.Within(ctx, f.cfg.Runtime, "close the fence file", func() error {
		if broken {
			if err := f.replace(); err != nil {
				return err
			}
		}
		if err := f.drop(); err != nil {
			return err
		}
		f.leave()
		return nil
	})
}
