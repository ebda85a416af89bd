package segment

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
)

// cluster is this node's side of the cluster fence. One goroutine, follow, opens
// it, merges this node's marks into it and notices that it is gone; loads use it
// while it is open. Only follow touches the state file.
//
// Why a degraded range can never be missing in a fence that is open: it is admitted
// while its load is counted by the group of the outage, which begins only after
// the state file says "not merged"; the merge begins only after that group is
// closed and empty, and reads the marks after that. A range that moved the fence while
// it was open is dropped if a merge has begun when its mark is set: the fence that is
// open afterwards may not hold its end, and the merge may not have read its mark.
type cluster struct {
	alloc   *Allocator
	fence   ClusterFence
	name    string
	degrade bool
	calls   callee
	seen    sightings

	mu      sync.Mutex
	phase   phase
	space   string          // incarnation of the fence that is open
	known   fenceState      // as in the state file
	outage  *group          // degraded loads of this outage, nil if none are allowed
	dirty   map[string]bool // tags of degraded loads since the last merge; nil: it may be any
	changed chan struct{}   // closed at every change of phase
	doubted chan struct{}   // closed when an open fence is doubted
	owed    bool            // it lost entries: merge, whatever the state file says
	losses  int             // how often lost was called
	merges  int             // how many merges have begun
	mute    bool            // a Swap failed: it is open again only after one succeeds
	served  bool            // it was open once

	suspects map[string]string // tags whose row went below the entry that was seen last, and what showed it
}

type phase int8

const (
	probing phase = iota // nobody knows how it is: follow is about to find out
	fallen               // it does not answer
	merging              // it answers, and gets this node's marks
	opened               // ranges are taken under it
)

// newCluster reads the state file. Without a cluster fence it notes there that
// this node's marks are not merged any more, since ranges are now taken without.
func newCluster(a *Allocator) (*cluster, error) {
	c := &cluster{
		alloc: a, fence: a.cfg.ClusterFence, name: a.cfg.ClusterFenceName, degrade: a.cfg.Degrade,
		calls:   callee{alloc: a, what: fmt.Sprintf("cluster fence %q", a.cfg.ClusterFenceName)},
		changed: make(chan struct{}),
		seen:    sightings{last: map[string]held{}}, suspects: map[string]string{},
	}
	var err error
	if c.known, err = readFenceState(a.disk, a.cfg.NodeID); err != nil {
		a.log.Warn("what is known of the cluster fence cannot be read; this node's fences are merged anew", "file", fenceStateName, "error", err)
	}
	if c.fence != nil {
		return c, nil
	}
	if c.known.Merged {
		err = c.remember(fenceState{Space: c.known.Space})
	}
	return nil, err
}

// number returns the Member.Fence of this node: 0 without a cluster fence, while some of
// the node's ranges are not in it, and where the node takes ranges without it in an outage.
func (c *cluster) number() int64 {
	if c == nil || c.degrade {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owed || !c.known.Merged {
		return 0
	}
	return fenceNumber(c.known.Space)
}

// fenceNumber returns a number from 1 that tells incarnations of cluster fences apart, 0
// for none.
func fenceNumber(space string) int64 {
	if space == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(space))
	return int64(binary.BigEndian.Uint64(sum[:])>>1) | 1
}

// follow keeps the fence open until shutdown.
func (c *cluster) follow() {
	a := c.alloc
	for failures := 0; !a.isClosing(); {
		doubted, err := c.open()
		if err == nil {
			failures = 0
			_ = a.rt.Wait(a.reading, doubted, 0)
			continue
		}
		failures++
		c.fall(err)
		_ = a.rt.Wait(context.Background(), a.closing, backoff(a.rt, failures))
	}
}

// open makes one attempt to open the fence, merges what is to be merged and
// returns a channel that is closed when the fence is doubted.
func (c *cluster) open() (doubted chan struct{}, err error) {
	a := c.alloc
	type answer struct {
		space   string
		created bool
	}
	got, err := call(a.reading, &c.calls, a.cfg.LoadTimeout, func(ctx context.Context) (n answer, err error) {
		n.space, n.created, err = c.fence.Open(ctx)
		return n, err
	})
	if err == nil && got.space == "" {
		err = errors.New("it has no incarnation")
	}
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	c.mu.Lock()
	known, owed, losses, mute := c.known, c.owed, c.losses, c.mute
	c.mu.Unlock()
	if known.Space != "" && known.Space != got.space {
		c.mu.Lock()
		c.dirty = nil
		c.mu.Unlock()
		c.raise(fmt.Sprintf("cluster fence %q was replaced: this node knows %q and found %q; it merges its own fences into it", c.name, known.Space, got.space),
			"find out who wiped it; until every node has merged its fences, a database that loses commits can repeat IDs: see that all nodes run")
	}
	if known.Space != got.space || !known.Merged || owed {
		n, err := c.merge(got.space)
		if err != nil {
			return nil, err
		}
		if err := c.remember(fenceState{Space: got.space, Merged: true}); err != nil {
			return nil, err
		}
		a.log.Info("this node's fences are in the cluster fence", "name", c.name, "incarnation", got.space, "created", got.created, "tags", n)
	}
	if mute {
		if err := c.probe(got.space); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.losses != losses { // while we merged, or merged nothing
		return nil, errors.New("it lost entries meanwhile")
	}
	c.space, c.served, c.doubted = got.space, true, make(chan struct{})
	c.mute, c.owed, c.dirty = false, false, map[string]bool{}
	c.turnLocked(opened)
	a.alarms.Clear(leaf.AlarmFence, c.name)
	a.alarms.Clear(leaf.AlarmDisk, fenceStateName) // what had to be written in the outage need not be any more
	return c.doubted, nil
}

// turnLocked changes the phase and wakes who waits for that. c.mu is held.
func (c *cluster) turnLocked(p phase) {
	c.phase = p
	close(c.changed)
	c.changed = make(chan struct{})
}

// doubt takes a fence that is open for gone, until follow has looked at it. mute says
// that it was a Swap that failed.
func (c *cluster) doubt(space string, mute bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mute = c.mute || mute
	c.doubtLocked(space)
}

func (c *cluster) doubtLocked(space string) {
	if c.phase == opened && c.space == space {
		c.turnLocked(probing)
		close(c.doubted)
	}
}

// lost is doubt with a proof that the fence forgot something: all of this node's
// marks go into it again.
func (c *cluster) lost(space, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.losses++
	c.owed, c.dirty = true, nil
	c.raise(fmt.Sprintf("cluster fence %q lost entries: %s; this node merges its own fences into it", c.name, what),
		"find out who deleted entries or restored a backup of it; see that all nodes run, and stop each, delete the file cluster-fence in its data directory and start it: it then merges its fences, too")
	c.doubtLocked(space)
}

// fall notes that the fence does not answer, and allows degraded loads if the
// policy says so and the disk remembers that they must be merged.
func (c *cluster) fall(reason error) {
	a := c.alloc
	if a.isClosing() {
		return
	}
	c.mu.Lock()
	known := c.known
	c.mu.Unlock()
	degrade := c.degrade
	if degrade {
		if err := c.remember(fenceState{Space: known.Space}); err != nil {
			reason, degrade = errors.Join(reason, err), false
		}
	}
	what := "no new ranges are loaded"
	if degrade {
		what = "new ranges are loaded on the node's own fence only (policy degrade)"
	}
	c.raise(fmt.Sprintf("cluster fence %q does not answer, %s: %s", c.name, what, firstLine(reason)),
		"look at the cluster fence, and at the network between it and this node")
	c.mu.Lock()
	defer c.mu.Unlock()
	if degrade && c.outage == nil {
		c.outage = &group{rt: a.rt}
	}
	c.turnLocked(fallen)
}

func (c *cluster) raise(text, do string) {
	c.alloc.alarms.Raise(leaf.Alarm{Code: leaf.AlarmFence, Subject: c.name, Text: text, Do: do})
}

// merge raises the entries of all tags that may lie below this node's marks, so that
// other nodes respect these, and returns how many tags that are. Loads wait
// meanwhile.
func (c *cluster) merge(space string) (int, error) {
	a := c.alloc
	c.mu.Lock()
	outage := c.outage
	c.outage = nil
	c.merges++
	c.turnLocked(merging)
	c.mu.Unlock()
	if outage != nil {
		if err := outage.wait(a.reading); err != nil {
			return 0, err
		}
	}
	marks := a.fence.all()
	c.mu.Lock()
	var tags []string
	for tag, m := range marks {
		if m.ranges() > 0 && (c.dirty == nil || c.dirty[tag]) {
			tags = append(tags, tag)
		}
	}
	c.mu.Unlock()
	slices.Sort(tags)
	var next atomic.Int64
	errs := make([]error, min(a.cfg.MaxLoads, len(tags)))
	workers := group{rt: a.rt}
	for w := range errs {
		workers.start(func() {
			for i := next.Add(1); i <= int64(len(tags)) && errs[w] == nil && a.reading.Err() == nil; i = next.Add(1) {
				errs[w] = c.raiseTo(a.reading, space, tags[i-1], marks[tags[i-1]].ranges())
			}
		})
	}
	// Not bounded by a context: each of the calls is, and none may outlive the merge.
	_ = workers.wait(context.Background())
	return len(tags), errors.Join(errors.Join(errs...), a.reading.Err())
}

// raiseTo raises the tag's entry to end if it lies below, or makes it.
func (c *cluster) raiseTo(parent context.Context, space, tag string, end int64) error {
	for range maxLost {
		e, ok, err := c.read(parent, space, tag)
		if err != nil {
			return err
		}
		var old *FenceEntry
		if ok {
			if e.End >= end {
				return nil
			}
			old = &e
		}
		if _, err = c.swap(parent, space, tag, old, end); !errors.Is(err, ErrFenceMoved) {
			return err
		}
	}
	return fmt.Errorf("raise the cluster fence of tag %q to %d: %w %d times in a row", tag, end, ErrFenceMoved, maxLost)
}

// probe makes a Swap that changes no tag's entry. A store can answer and read and
// yet refuse to write, as etcd does once its quota is used up; without this every
// load would burn a range to find it out.
func (c *cluster) probe(space string) error {
	tag := "\x01leaf-probe " + c.alloc.cfg.NodeID // a tag of this name would not mind
	if leaf.ValidateTag(tag) != nil {
		tag = "\x01leaf-probe"
	}
	for range maxLost {
		e, ok, err := c.read(c.alloc.reading, space, tag)
		if err != nil {
			return err
		}
		var old *FenceEntry
		if ok {
			old = &e
		}
		if _, err = c.swap(c.alloc.reading, space, tag, old, e.End); !errors.Is(err, ErrFenceMoved) {
			return err
		}
	}
	return fmt.Errorf("probe the cluster fence: %w", ErrFenceMoved)
}

// maxLost is how many races in a row are lost before a pause.
const maxLost = 16

// read and swap are the calls with their deadline. An error other than
// ErrFenceMoved makes the fence doubtful.
func (c *cluster) read(parent context.Context, space, tag string) (FenceEntry, bool, error) {
	type answer struct {
		e  FenceEntry
		ok bool
	}
	got, err := call(parent, &c.calls, c.alloc.cfg.LoadTimeout, func(ctx context.Context) (n answer, err error) {
		n.e, n.ok, err = c.fence.Read(ctx, space, tag)
		return n, err
	})
	if err != nil {
		c.doubt(space, false)
		return FenceEntry{}, false, fmt.Errorf("read the cluster fence of tag %q: %w", tag, err)
	}
	if got.ok {
		c.seen.add(tag, held{space, got.e})
	}
	return got.e, got.ok, nil
}

func (c *cluster) swap(parent context.Context, space, tag string, old *FenceEntry, end int64) (FenceEntry, error) {
	e, err := call(parent, &c.calls, c.alloc.cfg.LoadTimeout, func(ctx context.Context) (FenceEntry, error) {
		return c.fence.Swap(ctx, space, tag, old, end)
	})
	if err != nil {
		if !errors.Is(err, ErrFenceMoved) {
			c.doubt(space, true)
		}
		return FenceEntry{}, fmt.Errorf("move the cluster fence of tag %q to %d: %w", tag, end, err)
	}
	c.seen.add(tag, held{space, e})
	return e, nil
}

// ready reports whether ranges can be, or could once be, loaded, and what needs
// attention.
func (c *cluster) ready() (ok bool, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ok = c.served || c.outage != nil
	switch {
	case c.phase == opened:
	case c.outage != nil:
		reason = fmt.Sprintf("cluster fence %q does not answer; ranges are loaded on the node's own fence", c.name)
	case c.phase == merging:
		reason = fmt.Sprintf("this node's fences are being merged into cluster fence %q; no new ranges meanwhile", c.name)
	case !c.served:
		reason = fmt.Sprintf("cluster fence %q has not answered yet", c.name)
	default:
		reason = fmt.Sprintf("cluster fence %q does not answer; tags are served from memory", c.name)
	}
	return ok, reason
}
