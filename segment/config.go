package segment

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// Config tunes an Allocator. NodeID has no default; the zero value of each other field means its default.
type Config struct {
	// MaxWait is how long a call waits for a range if its context allows it to.
	// Too short turns a slow load into an error, too long piles up callers while
	// the store is down. 1 ms to 1 min; default 1 s.
	MaxWait time.Duration

	// LoadTimeout is the deadline of each store call but the reading of all tags,
	// which has ten times as much. 10 ms to 1 min; default 2 s.
	LoadTimeout time.Duration

	// MaxLoads is the number of store calls under way at once, per database. It
	// should not be above the store's connections. 1 to 1000; default 16.
	MaxLoads int

	// SyncInterval is the time between two readings of all tags, by which new rows
	// and options appear and deleted rows disappear. 100 ms to 1 h; default 60 s.
	SyncInterval time.Duration

	// NegativeTTL is how long a tag counts as unknown after the store said so.
	// 1 ms to 1 min; default 1 s.
	NegativeTTL time.Duration

	// MaxStep is where the dynamic step stops doubling. A row's own step may be
	// larger and is then its own limit. 1 to MaxStep; default 1,000,000.
	MaxStep int64

	// FixedStep switches the dynamic step off for all tags.
	FixedStep bool

	// ShortSegment and LongSegment are the boundaries of the dynamic step: a range
	// that lasted less than ShortSegment is followed by one of twice its length,
	// one that lasted more than LongSegment by one of half. Defaults 15 and 30 min;
	// at least 1 s, in order.
	ShortSegment time.Duration
	LongSegment  time.Duration

	// RecentFor is how long after its last use a tag counts as recent; the ranges
	// of recent tags are loaded at start. Default 24 h; at least 1 s.
	RecentFor time.Duration

	// KeepUnused keeps Close from returning unused numbers to the store. Set it
	// behind proxies that may send a statement twice (rule G).
	KeepUnused bool

	// NodeID is the identity of the data directory, as datadir.Dir has it. The fence file carries it, and another one makes
	// New refuse the file. By this name the other nodes ask this one in a repair for the numbers that it holds. Required.
	//
	// A name that outlives the directory, such as a host's, must not be used: where the directory is lost, the node with the
	// new one would answer in place of the lost one, whose numbers it does not know, and a repair would go on below them.
	NodeID string

	// Logger receives what operators should see. Default: discard. Its handler must not block: the node
	// serves what it has in memory meanwhile, but loads and the look at the board wait.
	Logger *slog.Logger

	// Alarms receives the states that an operator should look at. Default: the beginning
	// of each is a line at ERROR in Logger, with the attributes code, subject and do.
	Alarms leaf.Alarms

	// ClusterFence is the fence that all nodes share (docs/adr/0010). nil: each node
	// protects its own ranges only.
	ClusterFence fence.Cluster

	// ClusterFenceName names it in alarms. Default "cluster-fence".
	ClusterFenceName string

	// ClusterID returns the ID of the cluster that this node belongs to, or "" if it has none for now; an error means that it is
	// not known yet, and that no range can be taken either. A cluster fence of another cluster is not used. A node without an
	// ID uses the fence and asks again every minute. nil: the node does not compare.
	ClusterID func(ctx context.Context) (string, error)

	// Degrade lets a node load ranges on its own fence alone while the cluster fence
	// does not answer. Default: no new ranges then. With Degrade, a database that loses
	// commits in that time can make nodes repeat IDs of one another.
	Degrade bool

	// Terms tells when this node may issue tags in strict order. nil: never.
	Terms Terms

	// Runtime is the clock and scheduler. Default: leaf.SystemRuntime.
	Runtime leaf.Runtime
}

// maxNodeID is the longest NodeID: with what boardName puts behind it, it fits into the column of leaf_repair_node.
const maxNodeID = 60

// isNodeID reports whether a board can have the name of a node.
func isNodeID(id string) bool {
	return len(id) <= maxNodeID && id != DeletedRow && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}

// WithDefaults returns c with every zero field set to its default.
func (c Config) WithDefaults() Config {
	c.MaxWait = cmp.Or(c.MaxWait, time.Second)
	c.LoadTimeout = cmp.Or(c.LoadTimeout, 2*time.Second)
	c.MaxLoads = cmp.Or(c.MaxLoads, 16)
	c.SyncInterval = cmp.Or(c.SyncInterval, time.Minute)
	c.NegativeTTL = cmp.Or(c.NegativeTTL, time.Second)
	c.MaxStep = cmp.Or(c.MaxStep, 1_000_000)
	c.ShortSegment = cmp.Or(c.ShortSegment, 15*time.Minute)
	c.LongSegment = cmp.Or(c.LongSegment, 30*time.Minute)
	c.RecentFor = cmp.Or(c.RecentFor, 24*time.Hour)
	c.ClusterFenceName = cmp.Or(c.ClusterFenceName, "cluster-fence")
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Terms == nil {
		c.Terms = noTerms{}
	}
	if c.Runtime == nil {
		c.Runtime = leaf.SystemRuntime()
	}
	return c
}

// Validate returns leaf.ErrBadRequest if a field is outside its limits. New calls
// it after WithDefaults.
func (c Config) Validate() error {
	durations := []struct {
		field    string
		value    time.Duration
		min, max time.Duration
	}{
		{"max-wait", c.MaxWait, time.Millisecond, time.Minute},
		{"load-timeout", c.LoadTimeout, 10 * time.Millisecond, time.Minute},
		{"sync-interval", c.SyncInterval, 100 * time.Millisecond, time.Hour},
		{"negative-ttl", c.NegativeTTL, time.Millisecond, time.Minute},
		{"short-segment", c.ShortSegment, time.Second, c.LongSegment},
		{"long-segment", c.LongSegment, c.ShortSegment, 1 << 62},
		{"recent-for", c.RecentFor, time.Second, 1 << 62},
	}
	for _, d := range durations {
		if d.value < d.min || d.value > d.max {
			return leaf.BadField(d.field, d.value, fmt.Sprintf("must be %v to %v", d.min, d.max))
		}
	}
	switch {
	case c.NodeID == "":
		return leaf.BadField("node-id", c.NodeID, "must be the identity of the data directory: without it no repair of another node asks for the numbers of this one, and they could repeat")
	case !isNodeID(c.NodeID):
		return leaf.BadField("node-id", c.NodeID, fmt.Sprintf("must be the identity of the data directory: at most %d visible characters of ASCII, and not %q", maxNodeID, DeletedRow))
	case c.MaxLoads < 1 || c.MaxLoads > 1000:
		return leaf.BadField("max-loads", c.MaxLoads, "must be 1 to 1000")
	case c.MaxStep < 1 || c.MaxStep > MaxStep:
		return leaf.BadField("max-step", c.MaxStep, fmt.Sprintf("must be 1 to %d", MaxStep))
	}
	return nil
}

func (c Config) pace() pace {
	return pace{short: c.ShortSegment, long: c.LongSegment, maxStep: c.MaxStep, fixed: c.FixedStep}
}
