package segment_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

// TestInterleaved lets three nodes issue IDs of a tag, one call to the database, the cluster fence or the disk at a time. The
// seed decides whose turn it is, which calls are lost or late, and when a node is killed, stops, or loses its data directory.
// Operators edit the step, delete the tag, create it again, and repair it. Seeds take turns at four worlds: nothing is lost; the
// database loses commits under a cluster fence; the cluster fence is away, or wiped, and nodes degrade; the database loses
// commits, and there is no cluster fence. In the first three no ID repeats, in the last one none that is asked for after a
// repair. At the end all is well, and each node issues.
//
// Where two timers end at one moment, Go decides which one is first, so a seed repeats nearly always, not always.
func TestInterleaved(t *testing.T) {
	t.Parallel()
	long.Plain(t)
	seeds := long.Load(uint64(60), 20_000)
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			x := newInterleaving(seed)
			x.run()
			if x.broken != "" {
				t.Fatalf("seed %d: %s\n%s", seed, x.broken, strings.Join(x.log, "\n"))
			}
		})
	}
}

// interleaving is one run. Its goroutine alone draws, and makes the calls of all processes. It holds mu unless it waits.
type interleaving struct {
	rng    *rand.Rand
	store  *memory.Store
	writes []func(s *memory.Store) // what the database has carried out, for a replica that misses the last of them
	fence  *memory.Fence           // nil: there is none

	losses   bool // the database loses commits
	outages  bool // the cluster fence is away, or wiped
	strict   bool // the tag is in strict order
	deletes  bool // the tag is deleted, and created again
	eventful int  // how often something happens beside the calls
	faulty   int  // how often a call is lost or late

	nodes [3]*interleavedNode
	owner *ownership // of the tag in strict order
	away  bool       // the cluster fence does not answer
	space string     // its incarnation; "": it was wiped
	lost  bool       // a data directory, or the cluster fence under the policy degrade
	calm  bool       // no fault happens any more

	mu                sync.Mutex
	waiting           []*turn // calls, and clients that want to make one
	late              []*turn // calls that arrive later
	asked             chan struct{}
	issued            map[int64]string // by whom
	highest           int64            // ID
	end               int64            // of the ranges that were reserved
	repairs           int              // under way
	repaired, latched bool             // at some time; since the last repair
	era               int              // changes at each loss, and at each repair of all nodes
	safe              bool             // the database has lost nothing since the last of these repairs
	broken            string
	log               []string
}

func newInterleaving(seed uint64) *interleaving {
	x := &interleaving{
		rng: rand.New(rand.NewPCG(seed, 11)), store: memory.New(), asked: make(chan struct{}, 1), issued: map[int64]string{},
		losses: seed%2 == 1, outages: seed%4 == 2,
	}
	if seed%4 == 1 || x.outages {
		x.fence = memory.NewFence()
	}
	x.strict, x.deletes, x.eventful, x.faulty = x.rng.IntN(3) == 0, x.rng.IntN(3) == 0, 1+x.rng.IntN(8), x.rng.IntN(8)
	for i := range x.nodes {
		x.nodes[i] = &interleavedNode{name: fmt.Sprint("n", i), disk: newDisk()}
	}
	return x
}

func (x *interleaving) note(format string, args ...any) {
	x.log = append(x.log, fmt.Sprintf(format, args...))
}

// write is a change of the database by an operator.
func (x *interleaving) write(f func(s *memory.Store)) {
	f(x.store)
	x.writes = append(x.writes, f)
}

// tag is the row of the tag, with the options that it always has.
func (x *interleaving) tag(start int64) segment.NewRow {
	row := segment.NewRow{Tag: "order", Start: start, Step: 3}
	if x.strict {
		row.Order = segment.OrderStrict
	}
	return row
}

func (x *interleaving) run() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.create(1)
	for _, n := range x.nodes {
		x.start(n)
	}
	for range 500 + x.rng.IntN(1500) {
		x.unlocked(synctest.Wait)
		if x.broken != "" {
			break
		}
		x.step()
	}
	x.rest()
	for _, n := range x.nodes {
		x.kill(n.proc)
	}
	x.unlocked(func() { time.Sleep(2 * time.Minute) }) // until all that is under way has ended
}

// unlocked lets all others go on.
func (x *interleaving) unlocked(wait func()) {
	x.mu.Unlock()
	defer x.mu.Lock()
	wait()
}

// step gives one turn, or lets time pass, or something happen.
func (x *interleaving) step() {
	slices.SortStableFunc(x.waiting, func(a, b *turn) int {
		return cmp.Or(strings.Compare(a.proc.name, b.proc.name), strings.Compare(a.what, b.what))
	})
	n := len(x.waiting)
	idle := !slices.ContainsFunc(x.waiting, func(t *turn) bool { return t.do != nil })
	select {
	case <-x.asked: // before this step
	default:
	}
	switch r := x.rng.IntN(200); {
	case r < x.eventful && !x.calm && (x.repairs == 0 || x.rng.IntN(16) == 0):
		x.happen()
	case idle && (n == 0 || r < 80 || r < 190 && (x.repairs > 0 || x.calm)):
		x.unlocked(func() {
			select {
			case <-x.asked:
			case <-time.After(time.Second):
			}
		})
	case r < 14:
		most := 20 * time.Millisecond
		if x.rng.IntN(8*(1+4*x.repairs)) == 0 {
			most = 3 * time.Second
		}
		pause := time.Duration(x.rng.Int64N(int64(most)))
		x.unlocked(func() { time.Sleep(pause) })
	case r < 20 && len(x.late) > 0:
		next := x.rng.IntN(len(x.late))
		t := x.late[next]
		x.late = slices.Delete(x.late, next, next+1)
		x.note("%s %s: arrived: %v", t.proc.name, t.what, x.carryOut(t))
	default:
		next := x.rng.IntN(n)
		for x.repairs > 0 && !idle && x.waiting[next].do == nil && x.rng.IntN(8) > 0 { // else clients take most of the turns
			next = x.rng.IntN(n)
		}
		t := x.waiting[next]
		x.waiting = slices.Delete(x.waiting, next, next+1)
		x.give(t)
	}
}

// happen lets something be done by others than the nodes.
func (x *interleaving) happen() {
	n := x.nodes[x.rng.IntN(len(x.nodes))]
	row, missing := x.store.Lookup(context.Background(), "order")
	switch r := x.rng.IntN(20); {
	case n.proc == nil:
		x.start(n)
	case x.strict && (r < 2 || x.owner == nil):
		x.own(n.proc)
	case r < 3:
		x.note("%s is killed", n.proc.name)
		x.kill(n.proc)
		if x.rng.IntN(6) == 0 && (x.fence != nil || !x.losses) {
			x.note("%s has lost its data directory", n.name)
			n.name, n.disk, x.lost = n.name+"'", newDisk(), true
		}
	case r < 7:
		x.stop(n.proc)
	case r < 9:
		step := 1 + x.rng.Int64N(6)
		x.write(func(s *memory.Store) { _ = s.Update(context.Background(), "order", segment.Change{Step: &step}) })
	case r < 11 && x.losses && (x.fence == nil || x.merged()):
		x.fail()
	case r < 13 && x.outages:
		x.away = !x.away && x.rng.IntN(2) == 0
		x.note("the cluster fence is away: %v", x.away)
	case r == 13 && x.fence != nil && (!x.losses || !x.lost && missing == nil && row.MaxID >= x.end): // one loss at a time
		x.note("the cluster fence is wiped")
		x.fence.Wipe()
		x.space, x.lost = "", x.lost || x.outages
	case r < 16 && x.deletes && missing == nil:
		x.note("the tag is deleted")
		x.write(func(s *memory.Store) { _ = s.Delete(context.Background(), "order") })
	case r < 16 && missing != nil:
		x.create(x.least())
	case r < 19 && x.repairs == 0 && !n.proc.stopping && (x.allRun() || x.rng.IntN(4) == 0):
		x.repair(n.proc)
	}
}

// fail makes a replica the database, which misses some commits.
func (x *interleaving) fail() {
	x.writes = x.writes[:max(1, len(x.writes)-x.rng.IntN(30))]
	replica := memory.New()
	for _, w := range x.writes {
		w(replica)
	}
	x.store = replica
	x.era++
	x.safe = false
	row, err := x.store.Lookup(context.Background(), "order")
	x.note("the database has lost commits: %d, %v", row.MaxID, err)
}

// merged reports whether the cluster fence holds what every node knows.
func (x *interleaving) merged() bool {
	return x.space != "" && !slices.ContainsFunc(x.nodes[:], func(n *interleavedNode) bool {
		state := string(n.disk.content("cluster-fence"))
		return !strings.Contains(state, x.space) || !merged(n.disk)
	})
}

func (x *interleaving) create(start int64) {
	x.note("the tag is created at %d", start)
	x.write(func(s *memory.Store) { _ = s.Create(context.Background(), x.tag(start)) })
}

// least returns the lowest start with which the board lets the tag be created.
func (x *interleaving) least() (start int64) {
	notices, _ := x.store.Notices(context.Background())
	n := segment.NoticeOf("order", notices)
	start = max(1, n.Regress, n.Repaired)
	answers, _ := x.store.Answers(context.Background(), "order")
	for _, a := range answers {
		start = max(start, a.High)
	}
	return start
}

func (x *interleaving) allRun() bool {
	return !slices.ContainsFunc(x.nodes[:], func(n *interleavedNode) bool { return n.proc == nil || n.proc.stopping })
}

// repair repairs the tag by a process. Where the database has lost commits, all that any node knows is reached only if all run.
func (x *interleaving) repair(p *process) {
	x.note("%s repairs", p.name)
	x.repairs++
	all, nodes, era := x.allRun(), x.running(), x.era
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		plan, err := p.alloc.RepairByPlan(ctx, "order", 0)
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.calm && errors.Is(err, segment.ErrSilentNodes) { // one of them has lost its data directory
			above := x.end + 1000
			x.unlocked(func() { plan, err = p.alloc.RepairByPlan(ctx, "order", above) })
		}
		x.note("%s has repaired: %+v, %v", p.name, plan, err)
		x.repairs--
		x.repaired = true
		if err == nil && all && x.allRun() && x.running() == nodes && x.era == era {
			x.era++
			x.safe = true
		}
	}()
}

func (x *interleaving) running() (procs [3]*process) {
	for i, n := range x.nodes {
		procs[i] = n.proc
	}
	return procs
}

// rest ends all faults, and waits until each node has issued.
func (x *interleaving) rest() {
	x.note("all is well")
	x.calm, x.away = true, false
	began, moved, repaired := time.Now(), time.Now(), time.Now()
	for x.broken == "" {
		done := true
		for _, n := range x.nodes {
			if n.proc == nil {
				x.start(n)
			}
			done = done && n.proc.served
		}
		since := func(t *time.Time, d time.Duration) bool {
			is := time.Since(*t) > d
			if is {
				*t = time.Now()
			}
			return is
		}
		switch _, missing := x.store.Lookup(context.Background(), "order"); {
		case done:
			return
		case time.Since(began) > 10*time.Minute:
			x.broken = "a node has not issued for 10 minutes"
		case missing != nil && x.repairs == 0:
			x.create(max(x.end, x.least()))
		case x.strict && since(&moved, 5*time.Second):
			x.own(x.nodes[x.rng.IntN(len(x.nodes))].proc)
		case x.latched && x.repairs == 0 && x.allRun() && since(&repaired, 10*time.Second):
			x.latched = false
			x.repair(x.nodes[x.rng.IntN(len(x.nodes))].proc)
		}
		x.step()
		x.unlocked(synctest.Wait)
	}
}

// took notes what a client got. era is that of the moment when it asked, and before is the highest ID that was issued then.
func (x *interleaving) took(p *process, era int, before int64, got []leaf.Range, err error) {
	if errors.Is(err, leaf.ErrRegress) {
		x.latched = true
		if !x.losses && !x.lost && !x.repaired {
			x.broken = fmt.Sprintf("%s: %v, and nothing was lost", p.name, err)
		}
	}
	if err != nil {
		return
	}
	p.served = p.served || x.calm
	x.note("%s issues %v", p.name, got)
	for id := range leaf.IDs(got) {
		switch by, twice := x.issued[id]; {
		case twice && (x.fence != nil || !x.losses || x.safe && era == x.era):
			x.broken = fmt.Sprintf("%s has issued %d, as %s had", p.name, id, by)
		case x.strict && !x.losses && id <= before:
			x.broken = fmt.Sprintf("%s has issued %d after %d", p.name, id, before)
		}
		x.issued[id] = p.name
		x.highest = max(x.highest, id)
	}
}
