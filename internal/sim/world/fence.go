package world

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// The kinds of faults of the cluster fence.
const (
	FenceDown     Kind = "cluster fence down"
	FenceWiped    Kind = "cluster fence wiped"
	FenceMute     Kind = "cluster fence answers and does not write"
	FenceRestored Kind = "cluster fence restored from a backup"
)

// ErrFull is the answer of a store that reads and does not write.
var ErrFull = errors.New("world: no space for writes")

// Fence is a cluster fence behind links. It is a model of its own beside that of
// driver/memory, whose incarnations come from crypto/rand and which has no past.
type Fence struct {
	*Server

	Faults *Faults

	// Mute makes it refuse every Swap, as an etcd does whose quota is used up.
	Mute bool

	// Changed is called after the fence lost something.
	Changed func(k Kind)

	// Next is called once, by the next Swap that moves a tag's entry, with the way of its
	// caller: nil if no caller waits for that.
	Next func(l *Link)

	s     *sched.Scheduler
	space int // incarnation, 0: no namespace
	made  int // incarnations so far
	rows  map[string]fence.Entry
	past  []fenceMoment
	used  map[string]int64

	losses int              // how often it lost something
	since  map[string]int64 // the highest ends since then
}

type fenceMoment struct {
	at    time.Duration
	space int // a new namespace, with nothing in it
	tag   string
	entry fence.Entry
}

// NewFence returns a fence without a namespace.
func NewFence(s *sched.Scheduler, faults *Faults) *Fence {
	return &Fence{Server: &Server{Name: "fence"}, Faults: faults, s: s, used: map[string]int64{}, since: map[string]int64{}}
}

// End returns the entry's end, 0 if there is none.
func (f *Fence) End(tag string) int64 { return f.rows[tag].End }

// Used returns the highest end that the tag's entry had, in this incarnation or any
// other, without what was lowered again.
func (f *Fence) Used(tag string) int64 { return f.used[tag] }

// Losses returns how often it lost something.
func (f *Fence) Losses() int { return f.losses }

// Since returns the highest end that the tag's entry had since the fence lost something
// last, 0 if it had none.
func (f *Fence) Since(tag string) int64 { return f.since[tag] }

// Wipe deletes everything.
func (f *Fence) Wipe() {
	f.space, f.rows = 0, nil
	f.past = append(f.past, fenceMoment{at: f.s.Elapsed()})
	f.lost(FenceWiped)
}

// Restore makes it what it was at an earlier moment.
func (f *Fence) Restore(to time.Duration) {
	f.space, f.rows = 0, nil
	past := f.past
	for i, m := range past {
		if m.at > to {
			past = past[:i:i]
			break
		}
		f.apply(m)
	}
	f.past = past
	f.lost(FenceRestored)
}

func (f *Fence) lost(k Kind) {
	f.s.Note(f.Name, string(k))
	f.losses++
	f.since = map[string]int64{}
	for tag, e := range f.rows {
		f.since[tag] = e.End
	}
	if f.Changed != nil {
		f.Changed(k)
	}
}

func (f *Fence) apply(m fenceMoment) {
	switch {
	case m.tag != "":
		f.rows[m.tag] = m.entry
	default:
		f.space, f.rows = m.space, map[string]fence.Entry{}
	}
}

func (f *Fence) do(m fenceMoment) {
	m.at = f.s.Elapsed()
	f.apply(m)
	f.past = append(f.past, m)
}

// FenceClient is one process's fence.Cluster.
type FenceClient struct {
	// Creates is told of each call that is to make an entry where there is none.
	Creates func(tag string, end int64)

	// Opened is told how often the fence had lost something when it answered an Open that
	// its caller waited for.
	Opened func(losses int)

	// Seen is told what each Read answered that its caller waited for.
	Seen func(tag string, e fence.Entry, ok bool)

	// Moved is told of each Swap whose caller learned that it succeeded.
	Moved func(tag string, end int64)

	f *Fence
	l *Link
	p *sched.Process
}

var _ fence.Cluster = (*FenceClient)(nil)

// For returns the fence as a process reaches it.
func (f *Fence) For(l *Link, p *sched.Process) *FenceClient { return &FenceClient{f: f, l: l, p: p} }

func spaceName(n int) string { return fmt.Sprintf("incarnation-%d", n) }

// Open implements fence.Cluster.
func (c *FenceClient) Open(ctx context.Context) (space string, created bool, err error) {
	type answer struct {
		space   string
		created bool
		losses  int
	}
	f := c.f
	a, err := Call(ctx, c.p, c.l, "open the fence", Repeatable, func() (answer, error) {
		created := f.space == 0
		if created {
			f.made++
			f.do(fenceMoment{space: f.made})
		}
		return answer{spaceName(f.space), created, f.losses}, nil
	})
	if err == nil && ctx.Err() == nil && c.Opened != nil {
		c.Opened(a.losses)
	}
	return a.space, a.created, err
}

// Identify implements fence.Cluster. No node of the simulation asks: all are of one cluster.
func (c *FenceClient) Identify(context.Context, string, string) (string, error) { return "", nil }

// Read implements fence.Cluster.
func (c *FenceClient) Read(ctx context.Context, space, tag string) (fence.Entry, bool, error) {
	if err := fence.CheckEntry(tag, 0); err != nil {
		return fence.Entry{}, false, err
	}
	type answer struct {
		e  fence.Entry
		ok bool
	}
	f := c.f
	a, err := Call(ctx, c.p, c.l, "read the fence", Repeatable, func() (answer, error) {
		if f.space == 0 || space != spaceName(f.space) {
			return answer{}, fence.ErrReplaced
		}
		e, ok := f.rows[tag]
		return answer{e, ok}, nil
	})
	if err == nil && ctx.Err() == nil && c.Seen != nil {
		c.Seen(tag, a.e, a.ok)
	}
	return a.e, a.ok, err
}

// Swap implements fence.Cluster.
func (c *FenceClient) Swap(ctx context.Context, space, tag string, old *fence.Entry, end int64) (fence.Entry, error) {
	if err := fence.CheckEntry(tag, end); err != nil {
		return fence.Entry{}, err
	}
	if old == nil && c.Creates != nil {
		c.Creates(tag, end)
	}
	f := c.f
	e, err := Call(ctx, c.p, c.l, "move the fence", Repeatable, func() (fence.Entry, error) {
		if f.space == 0 || space != spaceName(f.space) {
			return fence.Entry{}, fence.ErrReplaced
		}
		if f.Mute {
			f.Faults.Hit(FenceMute)
			return fence.Entry{}, ErrFull
		}
		now, ok := f.rows[tag]
		if ok != (old != nil) || ok && now != *old {
			return fence.Entry{}, fence.ErrMoved
		}
		e := fence.Entry{End: end}
		if ok {
			e.Version = now.Version + 1
		}
		f.do(fenceMoment{tag: tag, entry: e})
		if !strings.HasPrefix(tag, "\x01") {
			f.s.Note(f.Name, tag, now.End, end)
			if end < now.End && f.used[tag] == now.End {
				f.used[tag] = end
			}
			f.used[tag] = max(f.used[tag], end)
			f.since[tag] = max(f.since[tag], end)
			if next := f.Next; next != nil {
				f.Next = nil
				next(c.l)
			}
		}
		return e, nil
	})
	if err == nil && c.Moved != nil { // also if the deadline has passed: the caller may take it within its grace
		c.Moved(tag, e.End)
	}
	return e, err
}

// Snapshot returns all entries, for tests.
func (f *Fence) Snapshot() map[string]fence.Entry { return maps.Clone(f.rows) }
