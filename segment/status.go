package segment

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// counters count since New.
type counters struct {
	loads, failures, unknown, vanished, regresses, races, waits, abandoned, returned atomic.Int64

	lost [lossReasons]atomic.Int64
}

// lossReason says why IDs of a committed range were dropped.
type lossReason int

const (
	lossRefused  lossReason = iota // a fence did not admit the range
	lossLate                       // it came after the tag was deleted, the store refused or Close ended, or memory has no room for it
	lossRepair                     // the tag was stopped or repaired, here or by another node
	lossDatabase                   // the database belongs to another tag rule or cluster now
	lossStop                       // Close could not return them
	lossOrder                      // the tag is in strict order, and the term in which they were reserved is over, or another node owns it
	lossPeriod                     // the numbers begin anew in each period, and theirs is over
	lossReasons
)

// Loss is how many IDs of committed ranges were dropped for one reason.
type Loss struct {
	Reason string // one word
	IDs    int64
}

// losses returns all reasons.
func (c *counters) losses() (all []Loss, sum int64) {
	for i, name := range [lossReasons]string{"refused", "late", "repair", "database", "stop", "order", "period"} {
		n := c.lost[i].Load()
		all, sum = append(all, Loss{name, n}), sum+n
	}
	return all, sum
}

// Status is the state of an Allocator as a whole. The counters run since New.
type Status struct {
	Ready   bool     // a store can serve, the cluster fence was open once (or the policy is degrade), and Close has not begun
	Reasons []string // why not ready, or what needs attention though ready
	Tags    int      // tags in the table

	Loads     int64 // ranges loaded
	Failures  int64 // loads that failed
	Unknown   int64 // loads of tags that the store did not have
	Vanished  int64 // readings of a store's tags that lacked most of those that were there
	Regresses int64 // ranges refused by a fence
	Races     int64 // ranges dropped because another node moved the cluster fence first
	Waits     int64 // calls that had to wait for a load
	Abandoned int64 // calls given up because they ignored their deadline
	Returned  int64 // numbers returned to the stores by Close
	Lost      int64 // numbers of committed ranges that were dropped
	LostBy    []Loss
}

// Status returns the current state.
func (a *Allocator) Status() Status {
	c := &a.counters
	st := Status{
		Tags: len(*a.table.Load()), Loads: c.loads.Load(), Failures: c.failures.Load(), Unknown: c.unknown.Load(), Vanished: c.vanished.Load(), Regresses: c.regresses.Load(), Races: c.races.Load(),
		Waits: c.waits.Load(), Abandoned: c.abandoned.Load(), Returned: c.returned.Load(),
	}
	st.LostBy, st.Lost = c.losses()
	for _, s := range a.shards {
		serves, reason := s.serves()
		st.Ready = st.Ready || serves
		if reason != "" {
			st.Reasons = append(st.Reasons, reason)
		}
	}
	ok, reason := a.fence.Ready()
	st.Ready = st.Ready && ok
	if reason != "" {
		st.Reasons = append(st.Reasons, reason)
	}
	if n := a.fence.Latched(); n > 0 {
		st.Reasons = append(st.Reasons, fmt.Sprintf("%d tags are latched until repaired (leaf tag list shows them)", n))
	}
	if a.isClosing() {
		st.Ready = false
		st.Reasons = append(st.Reasons, "shutting down")
	}
	return st
}

// serves reports whether IDs can be had of the store's tags: from memory, or by loads.
func (s *shard) serves() (ok bool, reason string) {
	s.mu.Lock()
	synced, last, starving, foreign, blocked := s.synced, s.last, s.starving, s.foreign, s.blocked
	if foreign != nil {
		reason = s.ownerLocked()
	}
	s.mu.Unlock()
	refused := s.refuses()
	if !s.retry.waiting() {
		blocked = nil // what it blocked has loaded since, or is gone, so nothing is known
	}
	if err := s.alloc.fence.Hangs(); err != nil {
		blocked = err
	}
	switch {
	case otherCluster(foreign):
		if _, some := s.someServes(false); !some {
			return false, reason + ", and no tag has IDs in memory"
		}
		return true, reason + "; tags are served from memory"
	case refused != nil:
		return false, fmt.Sprintf("%s; nothing is issued from store %q", strings.TrimPrefix(refused.Error(), leaf.ErrNotReady.Error()+": "), s.name)
	case !synced:
		return false, fmt.Sprintf("store %q has not answered yet", s.name)
	case last != nil && starving != nil:
		reason = fmt.Sprintf("store %q does not answer", s.name)
	case last != nil && blocked == nil:
		reason = fmt.Sprintf("the list of tags of store %q cannot be read", s.name)
	case starving != nil:
		reason = fmt.Sprintf("no range can be loaded from store %q", s.name)
	case blocked != nil:
		reason = fmt.Sprintf("no range of store %q can be loaded: %s", s.name, firstLine(blocked))
	}
	loads := starving == nil && blocked == nil
	switch tags, some := s.someServes(loads); {
	case tags > 0 && !some && !loads:
		return false, reason + ", and no tag has IDs in memory"
	case tags > 0 && !some:
		return false, fmt.Sprintf("all tags of store %q are latched until repaired, and none has IDs in memory", s.name)
	case loads:
		return true, reason
	}
	return true, reason + "; tags are served from memory"
}

// someServes reports whether a tag of the store has IDs in memory or, if loads are
// possible, is not latched. It ends at the first; before, it counted tags of the store.
func (s *shard) someServes(loads bool) (tags int, some bool) {
	a := s.alloc
	latched := a.fence.Latched() > 0
	for _, t := range *a.table.Load() {
		if t.shard != s {
			continue
		}
		tags++
		if loads && (!latched || !a.fence.Mark(t.name).Latched) {
			return tags, true
		}
		if t.stocked() {
			return tags, true
		}
	}
	return tags, false
}

// stocked reports whether this node may issue IDs that it has in memory: those of a tag that it owned before stay there
// until a call comes.
func (t *Tag) stocked() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stockLocked() == 0 {
		return false
	}
	_, err := t.mayLocked()
	return err == nil
}

// Answers reports whether the last reading of a store's tags succeeded. store is its
// place in Router.Stores.
func (a *Allocator) Answers(store int) bool {
	s := a.shards[store]
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced && s.last == nil
}

// TagStatus is what is in memory for a tag that is in use.
type TagStatus struct {
	Tag      string     `json:"tag"`
	Store    string     `json:"store"`
	Step     int64      `json:"step"`            // the row's own step, 0 if unknown
	Length   int64      `json:"length"`          // IDs in the last range
	Current  leaf.Range `json:"current"`         // the range being issued
	Position int64      `json:"position,string"` // the next ID of it
	Next     leaf.Range `json:"next"`            // the range after it, empty if not loaded
	Stock    int64      `json:"stock"`           // IDs in memory
	Rate     float64    `json:"rate"`            // IDs per second over the last one to two sync intervals
	Loading  bool       `json:"loading"`
	Fence    int64      `json:"fence,string"`
	Latched  bool       `json:"latched"`
	Cluster  int64      `json:"cluster_fence,string,omitempty"` // the cluster fence's end when it was last seen, 0 if never
	Failures int        `json:"failures"`                       // loads that failed in a row, 0 when the cause is gone
	LastUse  time.Time  `json:"last_use,omitzero"`              // to within the sync interval
	Problem  string     `json:"problem,omitempty"`              // class of the last failure

	// Not in JSON, which every client may read.
	Issued   int64     `json:"-"` // IDs taken in this process
	LastLoad time.Time `json:"-"` // when the last range was asked for, zero if none arrived
	Failed   error     `json:"-"` // the last failure, nil if the last load succeeded; names hosts and users
}

// Snapshot returns all tags that have been used since New, sorted by name. It looks
// at one tag after another, so two of them may be of different moments.
func (a *Allocator) Snapshot() []TagStatus {
	all, _ := a.SnapshotAfter("", len(*a.table.Load()))
	return all
}

// SnapshotAfter is Snapshot for the first limit tags whose names come after the name
// after, in the order of their bytes; limit is 1 or more, or nothing is returned. more
// says that there are others behind them. It keeps no more than about two pages in
// memory, however many tags there are.
func (a *Allocator) SnapshotAfter(after string, limit int) (page []TagStatus, more bool) {
	if limit < 1 {
		return nil, false
	}
	byName := func(x, y *Tag) int { return strings.Compare(x.name, y.name) }
	var first []*Tag // the tags of the page and one more are among these
	for _, t := range *a.table.Load() {
		if t.name <= after || !t.used() {
			continue
		}
		if first = append(first, t); len(first) > 2*limit {
			slices.SortFunc(first, byName)
			first = first[:limit+1]
		}
	}
	slices.SortFunc(first, byName)
	if more = len(first) > limit; more {
		first = first[:limit]
	}
	for _, t := range first {
		if st, used := t.status(); used {
			page = append(page, st)
		}
	}
	return page, more && len(page) > 0
}

// Issued returns how many IDs were taken since New, of all tags in the table. It looks at
// every tag, under each tag's lock in turn. It falls when a tag leaves the table.
func (a *Allocator) Issued() (n int64) {
	for _, t := range *a.table.Load() {
		t.mu.Lock()
		n += t.issuedLocked()
		t.mu.Unlock()
	}
	return n
}

// used reports whether the tag was ever asked for an ID.
func (t *Tag) used() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf != nil
}

// status returns the tag's line of the snapshot; used is false if it was never asked
// for an ID.
func (t *Tag) status() (st TagStatus, used bool) {
	m := t.alloc.fence.Mark(t.name)
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf
	if b == nil {
		return TagStatus{}, false
	}
	st = TagStatus{
		Tag: t.name, Store: t.shard.name, Step: t.step, Length: b.last.length, Current: b.whole, Position: t.positionLocked(), Next: b.next,
		Loading: b.loading(), Fence: m.High, Cluster: t.alloc.fence.SeenInCluster(t.name), Latched: m.Latched, LastUse: b.usedAt,
		Stock: t.stockLocked(), Rate: t.rateLocked(t.alloc.rt.Now()), Issued: t.issuedLocked(), LastLoad: b.last.asked,
	}
	if st.Failures, st.Failed = t.failedLocked(); st.Failed != nil {
		st.Problem = leaf.ClassOf(storeError(st.Failed)).Code
	}
	return st, true
}
