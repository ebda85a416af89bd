package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/owner"
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/internal/sim/world"
	"github.com/leaf-idgen/leaf/segment"
)

// segmentEngine is the allocator of one process, its clients and what they saw.
type segmentEngine struct {
	mode  *segmentMode
	node  *Node
	state *segmentNode
	proc  *sched.Process
	alloc *segment.Allocator
	slots *owner.Slots // nil: no tag is in strict order

	entities *sequence.Positions // nil: there is no sequence

	latched map[string]time.Duration // tags that latched in this life, and when by now()
	active  map[[2]string]leaf.Alarm
	since   map[[2]string]time.Duration // when those began by now()
	calls   []*clientCall
	taken   map[string][]*delivery
	top     map[string]int64 // the highest end of those, by tag
	ended   time.Duration    // now() when it was killed
	twice   map[string]bool  // tags of which a range was handed out again
	failedN map[string]int64 // numbers that calls for several wanted in vain, by tag
	alone   bool             // it may take ranges without the cluster fence, and has not merged them
	known   map[string]int64 // the ends of entries that it saw, by tag
	version map[string]int64 // of the entries that were read last, by tag
	opened  int              // how often the cluster fence had lost something at the last Open
	found   bool             // it knows that the cluster fence lost something, and has not merged since
	missed  map[string]int64 // the ends of repairs that did not reach the node, by tag
	told    map[string]period
	mayTake map[string]int64 // of each tag with a period, the latest one that the process may have taken ranges of
	mending bool             // an operator repairs a tag through it
	looked  bool             // it read the cluster fence after the calm
	closing bool             // it stops
	dropped bool             // a tag was deleted in this life: its stock is lost

	members map[*world.Database]segment.Member // as what it entered the list of nodes last
}

// delivery is a range that the store handed to the engine.
type delivery struct {
	ids    leaf.Range
	issued int64
	sure   bool
	fenced bool  // the process wrote an entry of the cluster fence with its end
	alone  bool  // it came while the process did without the cluster fence
	known  int64 // the end of the tag's entry as the process knew it
	flaky  bool  // it came while the node's disk failed now and then
}

// clientCall is a call under way.
type clientCall struct {
	tag   string
	n     int
	began time.Duration // true time, without what the process stood still
	limit time.Duration
}

// callGrace is how much longer than its deadline a call may take.
const callGrace = 2 * time.Second

// start implements engine.
func (e *segmentEngine) start(ctx context.Context) {
	for range 2 {
		e.proc.Go(e.client)
		if e.entities != nil {
			e.proc.Go(e.callers)
		}
	}
	if e.slots != nil {
		e.proc.Go(func() {
			if err := e.slots.Start(ctx); err != nil && !e.closing { // a stop ends its wait for the registry
				e.mode.w.Failf("%s takes no part in strict order: %v", e.node.Name, err)
			}
		})
	}
	if err := e.alloc.Start(ctx); err != nil {
		e.mode.w.Failf("%s does not start: %v", e.node.Name, err)
	}
}

// stop implements engine. Clients go on until the process ends. A second stop, while the first one
// waits for a store, finds no stock any more.
func (e *segmentEngine) stop(ctx context.Context) {
	if !e.closing {
		e.closing = true
		if problems := e.waste(); len(problems) > 0 {
			e.mode.w.Failf("%s", problems[0])
		}
	}
	if e.slots != nil {
		if err := e.slots.Close(ctx); err != nil {
			text, _, _ := strings.Cut(err.Error(), "\n")
			e.mode.w.sched.Note(e.node.Name, "give slots away: "+text)
		}
	}
	if err := e.alloc.Close(ctx); err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n") // without the stack of a panic, which differs between equal runs
		e.mode.w.sched.Note(e.node.Name, "close: "+text)
	}
}

// Raise implements leaf.Alarms.
func (e *segmentEngine) Raise(a leaf.Alarm) {
	k := [2]string{a.Code, a.Subject}
	if _, ok := e.active[k]; !ok {
		e.since[k] = e.now()
	}
	e.active[k] = a
	if a.Code == leaf.AlarmRegress {
		e.mode.stopped[a.Subject] = true
	}
	if _, ok := e.latched[a.Subject]; a.Code == leaf.AlarmRegress && !ok {
		e.latched[a.Subject] = e.now()
	}
	e.mode.raised(e, a)
}

// Clear implements leaf.Alarms.
func (e *segmentEngine) Clear(code, subject string) {
	delete(e.active, [2]string{code, subject})
	if code == leaf.AlarmRegress {
		delete(e.latched, subject)
	}
	e.mode.cleared(e, code)
}

// latchesLast checks rule A at the start of a process: what latched a minute before the
// one before it ended is latched still.
func (e *segmentEngine) latchesLast(before *segmentEngine) {
	if before == nil || e.node.Forgot {
		return
	}
	if at := e.node.Disk.FailedAt; at > 0 && before.ended-at < time.Minute {
		return // what failed is tried again, soon
	}
	for tag, at := range before.latched {
		if before.ended-at > time.Minute && !e.alloc.Mark(tag).Latched {
			e.mode.w.Failf("%s forgot over a restart that %q is latched", e.node.Name, tag)
		}
	}
}

// alarms returns the active ones in order.
func (e *segmentEngine) alarms() []leaf.Alarm {
	all := make([]leaf.Alarm, 0, len(e.active))
	for _, a := range e.active {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b leaf.Alarm) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject))
	})
	return all
}

// client is an application: it idles, then wants some IDs of one tag.
func (e *segmentEngine) client() {
	m, rng, p := e.mode, e.mode.w.rng, e.proc
	idle := []time.Duration{time.Second, 20 * time.Second, time.Minute, 3 * time.Minute}
	waits := []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second}
	handles := map[string]*segment.Tag{}
	for {
		p.Sleep(m.w.upTo(idle[rng.IntN(len(idle))]))
		t := m.tags[rng.IntN(len(m.tags))]
		name := t.name
		var handle *segment.Tag
		if rng.IntN(2) == 0 {
			if handle = handles[name]; handle == nil {
				handle = e.alloc.Tag(name)
				handles[name] = handle
			}
		}
		for range 1 + rng.IntN(4) {
			n := 1
			if rng.IntN(4) == 0 {
				most := int64(120)
				if m.w.ledger.count > enough {
					most = 40
				}
				n = 2 + rng.IntN(m.batch(t, 3, most))
			}
			if e.try(name, n, 1+m.w.upTo(waits[rng.IntN(len(waits))]), handle) != nil && rng.IntN(2) == 0 {
				break
			}
		}
	}
}

// now returns the true time that the process had so far.
func (e *segmentEngine) now() time.Duration { return e.mode.w.sched.Elapsed() - e.proc.Stood() }

// call asks for n IDs, by handle if there is one, and checks and returns what it gets.
func (e *segmentEngine) call(name string, n int, limit time.Duration, handle *segment.Tag) ([]leaf.Range, error) {
	ctx, cancel := e.proc.WithTimeout(context.Background(), limit)
	defer cancel()
	return e.take(ctx, name, n, limit, handle)
}

// take is call with a context that ends after the limit.
func (e *segmentEngine) take(ctx context.Context, name string, n int, limit time.Duration, handle *segment.Tag) ([]leaf.Range, error) {
	w := e.mode.w
	c := &clientCall{tag: name, n: n, began: e.now(), limit: min(limit, time.Second)}
	e.calls = append(e.calls, c)
	high, floor := e.state.high[name], e.mode.floors[name]
	begun := e.moment(name)
	var before int64
	if e.mode.owners != nil {
		before = e.mode.owners.done[name]
	}
	var got []leaf.Range
	var one int64
	var err error
	switch {
	case n > 1 && handle != nil:
		got, err = handle.NextN(ctx, n)
	case n > 1:
		got, err = e.alloc.NextN(ctx, name, n)
	case handle != nil:
		one, err = handle.Next(ctx)
	default:
		one, err = e.alloc.Next(ctx, name)
	}
	if n == 1 && err == nil {
		got = []leaf.Range{{Lo: one, Hi: one + 1}}
	}
	e.left(c)
	if err != nil {
		if leaf.ClassOf(err).Err == nil {
			w.Failf("%s: a call for %v got an error of no class: %v", e.node.Name, c, err)
		}
		if n > 1 {
			e.failedN[name] += int64(n)
		}
		return nil, err
	}
	e.check(name, n, got, high)
	if e.mode.owners != nil {
		e.mode.owners.check(e, name, got, before)
	}
	if e.mode.periods != nil {
		e.mode.periods.check(e, name, got, begun)
	}
	if id := got[0].Lo; id < floor && floor != e.missed[name] && !e.node.Forgot {
		w.Failf("%s issues %d of %q after a repair that ended with %d", e.node.Name, id, name, floor)
	}
	return got, nil
}

// left ends a call.
func (e *segmentEngine) left(c *clientCall) {
	e.calls = slices.DeleteFunc(e.calls, func(x *clientCall) bool { return x == c })
	if late := c.late(e.now()); late > callGrace {
		e.mode.w.Failf("%s: a call for %v ended %v after its deadline", e.node.Name, c, late)
	}
}

// try is call for a caller that wants to know only whether it was served.
func (e *segmentEngine) try(name string, n int, limit time.Duration, handle *segment.Tag) error {
	_, err := e.call(name, n, limit, handle)
	return err
}

func (c *clientCall) String() string { return fmt.Sprintf("%d of %q", c.n, c.tag) }

// late returns by how much a call is past its deadline.
func (c *clientCall) late(now time.Duration) time.Duration { return now - c.began - c.limit }

// check takes the IDs of a call to the ledger. high was the largest ID of the tag when
// the call began.
func (e *segmentEngine) check(name string, n int, got []leaf.Range, high int64) {
	w, s := e.mode.w, Series{Mode: "segment", Tag: name}
	last := e.state.high[name]
	total := int64(0)
	for i, r := range got {
		ordered := r.Lo > high
		if i == len(got)-1 { // its end was taken now
			ordered = ordered && r.Hi-1 > last
		}
		if !ordered && !e.mode.mayGoBack(e.node, name) {
			w.Failf("%s: a call got %v of %q after %d", e.node.Name, got, name, max(high, last))
		}
		high = max(high, r.Hi-1)
		total += r.Len()
		e.served(name, r)
		e.node.Issued(s, r)
	}
	if total != int64(n) || len(got) == 0 {
		w.Failf("%s: a call for %d of %q got %v", e.node.Name, n, name, got)
	}
	e.state.high[name] = max(last, high)
}

// operatorsTime is how long an operator may take to act on an alarm in the calm.
const operatorsTime = 4 * time.Minute

// burst is how long callers may want more of a tag than its ranges hold.
const burst = 2 * time.Second

// latchedLately reports whether the operator has had no time yet for a node on which a
// tag is latched.
func (m *segmentMode) latchedLately(tag string) bool {
	return slices.ContainsFunc(m.running(), func(e *segmentEngine) bool {
		at, ok := e.latched[tag]
		return ok && e.now()-at < operatorsTime
	})
}

// lacksTags reports whether a tag of a database was deleted for good.
func (m *segmentMode) lacksTags(db string) bool {
	return slices.ContainsFunc(m.tags, func(t *tag) bool { return t.db.Name == db && !t.exists })
}

// problems returns what is wrong with a process that had time to recover.
func (e *segmentEngine) problems() []string {
	var all []string
	latched := 0
	for _, a := range e.alarms() {
		// A tag that latched minutes ago, or a row that was found to be wrong, is the operator's next task.
		t := e.mode.tag(a.Subject)
		if a.Code == leaf.AlarmRow && t != nil && e.now()-e.since[[2]string{a.Code, a.Subject}] < operatorsTime {
			continue
		}
		if a.Code == leaf.AlarmVanished && e.mode.lacksTags(a.Subject) {
			continue // rows were deleted for good, and the stock of their tags is still there
		}
		if a.Code == leaf.AlarmExhausted && t != nil && !t.exists {
			continue // the same, and a caller wanted more than that stock
		}
		if a.Code == leaf.AlarmExhausted && e.now()-e.since[[2]string{a.Code, a.Subject}] < burst {
			continue // callers still come, and one with little time met a tag of short ranges
		}
		if a.Code == leaf.AlarmClock && slices.ContainsFunc(e.mode.tags, e.mode.periods.excuses) {
			continue // it may say that the numbers of the period are used up
		}
		if a.Code == leaf.AlarmRegress && t != nil && e.now()-e.latched[a.Subject] < operatorsTime {
			latched++
			continue
		}
		all = append(all, fmt.Sprintf("%s: alarm %s of %s still says: %s", e.node.Name, a.Code, a.Subject, a.Text))
	}
	for _, c := range e.calls {
		if late := c.late(e.now()); late > callGrace {
			all = append(all, fmt.Sprintf("%s: a call for %v is %v late", e.node.Name, c, late))
		}
	}
	if st := e.alloc.Status(); !st.Ready || len(st.Reasons) > min(latched, 1) {
		all = append(all, fmt.Sprintf("%s: ready is %v because %v", e.node.Name, st.Ready, st.Reasons))
	}
	return append(all, e.waste()...)
}
