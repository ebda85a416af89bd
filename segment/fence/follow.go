package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// cluster is this node's side of the cluster fence. One goroutine, follow, opens the fence,
// merges this node's marks into it, and opens it again after a failure. Loads use the fence
// while it is open. Only follow writes the state file.
//
// Why an open fence holds the end of every degraded range:
//  1. Degraded loads are counted by the group of the outage. The group exists only after the
//     state file says "not merged".
//  2. A merge closes the group, waits until it is empty, and then reads the marks.
//  3. The merge writes the entry of such a range anew, also where it is high enough, so no other
//     node lowers it any more for a tail that it took before.
//
// Why an open fence holds the end of every other range: its load moved the entry. If the entry
// was wiped since, a merge follows. The merge reads the load's mark, or the load finds that a
// merge has begun since it read the fence, and drops its range (Load.recheck).
type cluster struct {
	fence *Fence
	store Cluster
	name  string
	calls bounded.Guard
	seen  sightings

	nameless bool // the fence was opened without an ID of this node's cluster; of follow alone

	mu      sync.Mutex
	phase   phase
	space   string          // incarnation of the fence that is open
	known   state           // as in the state file
	outage  *bounded.Group  // degraded loads of this outage, nil if none are allowed
	apart   map[string]bool // tags with degraded ranges since the last merge
	changed chan struct{}   // closed at every change of phase
	doubted chan struct{}   // closed when an open fence is doubted
	losses  int             // how often it lost entries since the last merge
	merges  int             // how many merges have begun
	served  bool            // it was open once
	trouble string          // what is wrong with the one that is not open
}

type phase int8

const (
	probing phase = iota // its state is not known: follow is about to find out
	fallen               // it does not answer, or is another cluster's
	merging              // it answers, and gets this node's marks
	opened               // ranges are taken under it
)

// doesNotAnswer is the usual trouble. waitsForID is that of errNoID.
const (
	doesNotAnswer = "does not answer"
	waitsForID    = "waits for the ID of this node's cluster, which its first database has"
)

// openCluster reads the state file. Without a cluster fence it writes "not merged" to the file,
// because this node now takes ranges without the cluster fence.
func (f *Fence) openCluster() error {
	cfg := &f.cfg
	c := &cluster{
		fence: f, store: cfg.Cluster, name: cfg.ClusterName,
		calls:   bounded.Guard{Runtime: cfg.Runtime, What: fmt.Sprintf("cluster fence %q", cfg.ClusterName), Limit: cfg.MaxCalls, Total: cfg.Abandoned},
		changed: make(chan struct{}),
		trouble: doesNotAnswer,
		apart:   map[string]bool{},
		seen:    sightings{last: map[string]Held{}},
	}
	var err error
	if c.known, err = readState(cfg.Disk, cfg.Node); err != nil {
		cfg.Logger.Warn("the file with this node's state of the cluster fence cannot be read; the node writes its fences to the cluster fence again", "file", stateName, "error", err)
	}
	if c.store != nil {
		f.cluster = c
		return nil
	}
	if c.known.Merged {
		return c.remember(state{Space: c.known.Space})
	}
	return nil
}

// follow keeps the fence open until Stop.
func (c *cluster) follow() {
	cfg := &c.fence.cfg
	for failures := 0; c.fence.running.Err() == nil; {
		doubted, err := c.open()
		if err == nil {
			failures = 0
			pause := time.Duration(0)
			if c.nameless {
				pause = compareAgain
			}
			_ = cfg.Runtime.Wait(c.fence.running, doubted, pause)
			continue
		}
		failures++
		if errors.Is(err, errNoID) {
			c.because(waitsForID)
		} else {
			c.fall(err)
		}
		_ = cfg.Runtime.Wait(c.fence.running, nil, bounded.Backoff(cfg.Runtime, failures))
	}
}

// open tries once to open the fence, and merges this node's marks if the fence may lack some.
// The channel that it returns is closed when the fence is in doubt.
func (c *cluster) open() (doubted chan struct{}, err error) {
	cfg := &c.fence.cfg
	// Before anything else: when this process is killed, the next one must merge.
	if _, _, err := c.noteLosses(); err != nil {
		return nil, err
	}
	type answer struct {
		space   string
		created bool
	}
	got, err := bounded.Do(c.fence.running, &c.calls, cfg.Timeout, func(ctx context.Context) (n answer, err error) {
		n.space, n.created, err = c.store.Open(ctx)
		return n, err
	})
	if err == nil && got.space == "" {
		err = errors.New("it has no incarnation")
	}
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if err := c.identify(got.space); err != nil {
		return nil, err
	}
	if known := c.knows(); known.Space != "" && known.Space != got.space {
		c.raise(fmt.Sprintf("cluster fence %q was replaced: this node knows %q and found %q; it merges its own fences into it", c.name, known.Space, got.space),
			"find out who wiped it; until every node has merged its fences, a database that loses commits can repeat IDs: see that all nodes run")
	}
	// Before the merge, which takes seconds where there are many tags: no loads begin during
	// a merge, degraded ones neither.
	if err := c.probe(got.space); err != nil {
		return nil, err
	}
	known, losses, err := c.noteLosses() // loads that looked at the same time have found theirs by now
	if err != nil {
		return nil, err
	}
	if losses > 0 {
		c.seen.distrust()
	}
	if known.Space != got.space || !known.Merged {
		n, err := c.merge(got.space)
		if err != nil {
			return nil, err
		}
		if err := c.remember(state{Space: got.space, Merged: true}); err != nil {
			return nil, err
		}
		cfg.Logger.Info("this node's fences are in the cluster fence", "name", c.name, "incarnation", got.space, "created", got.created, "tags", n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.losses != losses { // a load has found a loss since this attempt began
		return nil, errors.New("it lost entries meanwhile")
	}
	c.space, c.served, c.doubted = got.space, true, make(chan struct{})
	c.losses, c.trouble = 0, doesNotAnswer
	clear(c.apart)
	c.turnLocked(opened)
	cfg.Alarms.Clear(leaf.AlarmFence, c.name)
	cfg.Alarms.Clear(leaf.AlarmDisk, stateName) // "not merged" need not be written any more
	return c.doubted, nil
}

// knows returns what the state file says.
func (c *cluster) knows() state {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

// noteLosses writes "not merged" to the state file if loads have found losses since the last
// merge, and returns what the file says, and how many they found.
func (c *cluster) noteLosses() (known state, losses int, err error) {
	c.mu.Lock()
	known, losses = c.known, c.losses
	c.mu.Unlock()
	if losses > 0 && known.Merged {
		known.Merged = false
		err = c.remember(known)
	}
	return known, losses, err
}

// turnLocked changes the phase and wakes the loads that wait for a change. The caller holds
// c.mu.
func (c *cluster) turnLocked(p phase) {
	c.phase = p
	close(c.changed)
	c.changed = make(chan struct{})
}

// doubt makes loads wait until follow has opened the fence again.
func (c *cluster) doubt(space string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubtLocked(space)
}

func (c *cluster) doubtLocked(space string) {
	if c.phase == opened && c.space == space {
		c.turnLocked(probing)
		close(c.doubted)
	}
}

// lost is doubt with the proof that the fence lost entries: follow merges all marks again.
// A late reply about an earlier incarnation proves nothing: the open one has all marks.
func (c *cluster) lost(space, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == opened && c.space != space {
		return
	}
	c.losses++
	c.raise(fmt.Sprintf("cluster fence %q lost entries: %s; this node merges its own fences into it", c.name, what),
		"find out who deleted entries or restored a backup of it; see that all nodes run, and stop each whose data directory survives its process, delete the file cluster-fence there and start it: it then merges its fences, too. "+
			"Let the others run, such as a pod without a volume: they would forget what they are to merge, and merge it with a later range")
	c.doubtLocked(space)
}

// fall notes that the fence does not answer. It allows degraded loads if the policy is degrade
// and the state file says "not merged".
func (c *cluster) fall(reason error) {
	cfg := &c.fence.cfg
	if c.fence.running.Err() != nil {
		return
	}
	is, do := doesNotAnswer, "look at the cluster fence, and at the network between it and this node"
	if other, ok := errors.AsType[*foreignError](reason); ok {
		is, do = "is another cluster's", other.advice()
	}
	tell := func(what string, reason error) {
		c.raise(fmt.Sprintf("cluster fence %q %s, %s: %s", c.name, is, what, firstLine(reason)), do)
	}
	const none = "no new ranges are loaded"
	if !c.isDegraded() {
		tell(none, reason) // before the note, for which the disk may take long
	}
	degrade := c.fence.cfg.Degrade
	if degrade {
		if err := c.remember(state{Space: c.knows().Space}); err != nil {
			reason, degrade = errors.Join(reason, err), false
		}
	}
	what := none
	if degrade {
		what = "new ranges are loaded on the node's own fence only (policy degrade)"
	}
	tell(what, reason)
	c.mu.Lock()
	defer c.mu.Unlock()
	if degrade && c.outage == nil {
		c.outage = bounded.NewGroup(cfg.Runtime)
	}
	c.trouble = is
	c.turnLocked(fallen)
}

// because notes why the fence is not open.
func (c *cluster) because(trouble string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = trouble
}

// takenApart notes that a range of the tag is taken without the fence.
func (c *cluster) takenApart(tag string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apart[tag] = true
}

// isDegraded reports whether ranges may be taken without the fence.
func (c *cluster) isDegraded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outage != nil
}

func (c *cluster) raise(text, do string) {
	c.fence.cfg.Alarms.Raise(leaf.Alarm{Code: leaf.AlarmFence, Subject: c.name, Text: text, Do: do})
}

// ready reports whether the fence was open once, or degraded loads are allowed, and why it is
// not open now.
func (c *cluster) ready() (ok bool, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ok = c.served || c.outage != nil
	switch {
	case c.phase == opened:
	case c.outage != nil:
		reason = fmt.Sprintf("cluster fence %q %s; ranges are loaded on the node's own fence", c.name, c.trouble)
	case c.phase == merging:
		reason = fmt.Sprintf("this node's fences are being merged into cluster fence %q; no new ranges meanwhile", c.name)
	case !c.served && c.trouble == doesNotAnswer:
		reason = fmt.Sprintf("cluster fence %q has not answered yet", c.name)
	default:
		reason = fmt.Sprintf("cluster fence %q %s", c.name, c.trouble)
	}
	return ok, reason
}
