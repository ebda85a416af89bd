package sqldb_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// group is three servers that all accept writes.
type group interface {
	Database(i int) server.Database
	Kill(members ...int)
	Pause(members ...int)
	Resume(members ...int)
	Restart(ctx context.Context, members ...int) error
	Wait(ctx context.Context, members ...int) error
	Close() error
}

// TestGroup: nodes load ranges and renew claims through all members of a group, while one
// member is killed and comes back, and another one is stopped (SIGSTOP) and goes on. No
// range is handed out twice, and no record is overwritten.
func TestGroup(t *testing.T) {
	eachGroup(t, []string{"galera", "group replication"}, liveOn)
}

// TestUnbindInAGroup: nodes load through all members of a group while a command at one
// member takes the rule away. The members do not see each other's locks.
func TestUnbindInAGroup(t *testing.T) {
	eachGroup(t, []string{"galera", "group replication"}, func(t *testing.T, g group) {
		url := func(i int) string { return g.Database(i).URL() }
		applySchema(t, url(0))
		command := open(t, url(0))
		if err := command.Create(t.Context(), segment.NewRow{Tag: "order", Start: 1, Step: 1000}); err != nil {
			t.Fatal(err)
		}
		if err := recordRule(command)(t, oldRule); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			node := open(t, url(i))
			waitFor(t, "the member has the rule", func() bool { return node.Bind(t.Context(), oldRule) == nil })
		}
		for range 20 {
			unbindAmongLoads(t, command, url(0), url(1), url(2))
			for i := range 3 {
				node := open(t, url(i))
				waitFor(t, "the member has the rule again", func() bool { return node.Bind(t.Context(), oldRule) == nil })
			}
		}
	})
}

// TestReadsInAGroup: what one member has acknowledged, the next one shows.
func TestReadsInAGroup(t *testing.T) {
	eachGroup(t, []string{"galera", "group replication"}, func(t *testing.T, g group) {
		applySchema(t, g.Database(0).URL())
		var members [3]*sqldb.Store
		for i := range members {
			members[i] = open(t, g.Database(i).URL())
			waitFor(t, "the member has the tables", func() bool {
				_, err := members[i].Nodes(t.Context())
				return err == nil && members[i].Bind(t.Context(), segment.Binding{Store: "default"}) == nil
			})
		}
		const times = 300
		stale := 0
		for n := range times {
			id := fmt.Sprintf("node-%d", n)
			if err := members[n%3].Enter(t.Context(), segment.Member{Node: id, Process: 1}); err != nil {
				t.Fatal(err)
			}
			nodes, err := members[(n+1)%3].Nodes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(nodes, func(m segment.Member) bool { return m.Node == id }) {
				stale++
			}
		}
		if stale > 0 {
			t.Errorf("%d of %d readings lack what another member had acknowledged", stale, times)
		}
	})
}

func eachGroup(t *testing.T, kinds []string, run func(t *testing.T, g group)) {
	onlyInMatrix(t, "takes minutes")
	starts := map[string]func(ctx context.Context) (group, error){
		"galera":            func(ctx context.Context) (group, error) { return server.StartGalera(ctx, "", 3) },
		"group replication": func(ctx context.Context) (group, error) { return server.StartMySQLGroup(ctx, "", 3) },
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			g, err := starts[kind](t.Context())
			if err != nil {
				t.Fatal(err) // also if a server is missing
			}
			t.Cleanup(func() {
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			})
			run(t, g)
		})
	}
}

// groupBound is how long a step of the test may take. It is no measure of speed.
const groupBound = 3 * time.Minute

// liveOn breaks the members one after the other. After each step, every member that runs
// must have served more ranges and renewals.
func liveOn(t *testing.T, g group) {
	u := newGroupUse(t, g)
	u.hurry.Store(true)
	u.loaded("all run, without a pause", 6000)
	u.hurry.Store(false)
	u.served("all run", 0, 1, 2)
	g.Kill(2)
	u.served("member 2 is dead", 0, 1)
	u.do("member 2 comes back", func(ctx context.Context) error { return g.Restart(ctx, 2) })
	u.served("member 2 is back", 0, 1, 2)
	g.Pause(1)
	u.served("member 1 is stopped", 0, 2)
	g.Resume(1)
	u.do("member 1 goes on", func(ctx context.Context) error { return g.Wait(ctx, 1) })
	u.served("member 1 is back", 0, 1, 2)
	u.end()
	u.checkRanges()
	u.checkClaims()
}

// groupTags are the tags of which all members load ranges.
var groupTags = []string{"a", "b", "c"}

// groupUse is the nodes that use a group.
type groupUse struct {
	t    *testing.T
	g    group
	stop context.CancelFunc
	wait sync.WaitGroup

	hurry  atomic.Bool                                // loads have no pause between them, so that most of them meet others
	counts [3]struct{ ranges, renewals atomic.Int64 } // by member

	mu     sync.Mutex
	ranges map[string][]leaf.Range
	claims map[int64][]*groupClaim // by number
}

// groupClaim is a number as one claimer had it.
type groupClaim struct {
	nonce string
	floor int64
	bound int64 // the highest that was acknowledged: IDs below it may have been issued
}

// newGroupUse makes the tables and starts two loaders and two claimers at each member.
func newGroupUse(t *testing.T, g group) *groupUse {
	t.Helper()
	u := &groupUse{t: t, g: g, ranges: map[string][]leaf.Range{}, claims: map[int64][]*groupClaim{}}
	applySchema(t, g.Database(0).URL())
	s := open(t, g.Database(0).URL())
	for _, tag := range groupTags {
		if err := s.Create(t.Context(), segment.NewRow{Tag: tag, Start: 1, Step: 10}); err != nil {
			t.Fatal(err)
		}
	}
	ns := worker.Namespace{Name: "group", Fingerprint: "layout"}
	u.do("the namespace is declared new", func(ctx context.Context) error {
		return worker.NewPool(openRecords(t, g.Database(0).URL())).Init(ctx, ns)
	})
	loop, stop := context.WithCancel(t.Context())
	u.stop = stop
	t.Cleanup(u.end)
	for i := range u.counts {
		url := g.Database(i).URL()
		store, registry := open(t, url), openRecords(t, url)
		u.do(fmt.Sprintf("member %d has the rows", i), func(ctx context.Context) error {
			for _, tag := range groupTags {
				if _, err := store.Lookup(ctx, tag); err != nil {
					return err
				}
			}
			return store.Bind(ctx, segment.Binding{Store: "default"})
		})
		for n := range 2 {
			u.wait.Go(func() { u.load(loop, i, n, store) })
			u.wait.Go(func() { u.claim(loop, i, n, worker.NewPool(registry), ns) })
		}
	}
	return u
}

// do repeats something until it succeeds.
func (u *groupUse) do(what string, f func(ctx context.Context) error) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), groupBound)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		if !pause(ctx) {
			u.t.Fatalf("%s: %v", what, err)
		}
	}
}

// pause lets a server breathe, until ctx ends.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// served waits until the members have served 40 more ranges and 40 more renewals each.
func (u *groupUse) served(when string, members ...int) {
	u.t.Helper()
	const more = 40
	var ranges, renewals [3]int64
	for i := range u.counts {
		ranges[i], renewals[i] = u.counts[i].ranges.Load()+more, u.counts[i].renewals.Load()+more
	}
	began := time.Now()
	u.do(when, func(context.Context) error {
		for _, i := range members {
			if r, n := ranges[i]-u.counts[i].ranges.Load(), renewals[i]-u.counts[i].renewals.Load(); r > 0 || n > 0 {
				return fmt.Errorf("member %d owes %d ranges and %d renewals", i, max(0, r), max(0, n))
			}
		}
		return nil
	})
	u.t.Logf("%s: %.1f s", when, time.Since(began).Seconds())
}

// loaded waits until all members together have served more ranges.
func (u *groupUse) loaded(when string, more int64) {
	u.t.Helper()
	began, until := time.Now(), u.ranged()+more
	u.do(when, func(context.Context) error {
		if n := u.ranged(); n < until {
			return fmt.Errorf("the members owe %d ranges", until-n)
		}
		return nil
	})
	u.t.Logf("%s: %.1f s", when, time.Since(began).Seconds())
}

// ranged returns how many ranges the members have served.
func (u *groupUse) ranged() (n int64) {
	for i := range u.counts {
		n += u.counts[i].ranges.Load()
	}
	return n
}

// end stops the nodes.
func (u *groupUse) end() {
	u.stop()
	u.wait.Wait()
}

// load is a node that loads ranges of all tags through one member.
func (u *groupUse) load(loop context.Context, member, n int, s *sqldb.Store) {
	for turn := n; ; turn++ {
		tag := groupTags[turn%len(groupTags)]
		ctx, cancel := context.WithTimeout(loop, 2*time.Second)
		res, err := s.Reserve(ctx, segment.Request{Tag: tag, Step: 10, Length: 10, Min: 1, Max: segment.MaxStep})
		cancel()
		if err != nil && strings.Contains(err.Error(), "mixed up") {
			u.t.Errorf("a load of tag %q blames a proxy that is not there: %v", tag, err)
		}
		if err == nil {
			u.mu.Lock()
			u.ranges[tag] = append(u.ranges[tag], res.Range)
			u.mu.Unlock()
			u.counts[member].ranges.Add(1)
		}
		if loop.Err() != nil || !u.hurry.Load() && !pause(loop) {
			return
		}
	}
}

// claim is a node that claims a number through one member, renews it some times, and dies
// without a release.
func (u *groupUse) claim(loop context.Context, member, n int, registry worker.Registry, ns worker.Namespace) {
	for life := 0; loop.Err() == nil; life++ {
		now := time.Now().UnixMilli()
		req := worker.Request{
			Namespace: ns, Address: fmt.Sprintf("10.0.%d.%d:8080", member, n), Nonce: rand.Text(), Numbers: leaf.Range{Lo: 0, Hi: 8},
			Now: now, Bound: now + groupHorizon, Margin: 100, Quiet: now + groupHorizon,
		}
		ctx, cancel := context.WithTimeout(loop, 2*time.Second)
		own, err := registry.Claim(ctx, req)
		cancel()
		if err != nil {
			_ = pause(loop)
			continue
		}
		c := &groupClaim{nonce: req.Nonce, floor: own.Floor, bound: own.Bound}
		u.mu.Lock()
		u.claims[own.Number] = append(u.claims[own.Number], c)
		u.mu.Unlock()
		for range 20 + 5*(life%5) {
			ctx, cancel := context.WithTimeout(loop, 2*time.Second)
			next, err := registry.Renew(ctx, own, time.Now().UnixMilli()+groupHorizon)
			cancel()
			if errors.Is(err, worker.ErrLost) || !pause(loop) {
				break
			}
			if err != nil {
				continue // nobody knows: again, with the same record
			}
			own = next
			u.mu.Lock()
			c.bound = max(c.bound, own.Bound)
			u.mu.Unlock()
			u.counts[member].renewals.Add(1)
		}
	}
}

// groupHorizon is how far T lies ahead, in milliseconds: short, so that numbers change
// their owners often.
const groupHorizon = 500

func (u *groupUse) checkRanges() {
	u.t.Helper()
	for tag, all := range u.ranges {
		slices.SortFunc(all, func(a, b leaf.Range) int { return int(a.Lo - b.Lo) })
		for i, r := range all[1:] {
			if r.Lo < all[i].Hi {
				u.t.Errorf("tag %q: %v and %v were both handed out", tag, all[i], r)
			}
		}
		u.t.Logf("tag %q: %d ranges", tag, len(all))
	}
}

// checkClaims: a claimer begins at or above every T that was acknowledged to the claimers
// of its number before it, and the registry holds the last T of each number.
func (u *groupUse) checkClaims() {
	u.t.Helper()
	tops := map[int64]int64{}
	for number, all := range u.claims {
		slices.SortFunc(all, func(a, b *groupClaim) int { return int(a.floor - b.floor) })
		top := int64(0)
		for i, c := range all {
			if c.floor < top {
				u.t.Errorf("number %d: %s began at %d, and an earlier claimer (%s) was told that T is %d", number, c.nonce, c.floor, all[i-1].nonce, top)
			}
			top = max(top, c.bound)
		}
		tops[number] = top
		u.t.Logf("number %d: %d claims", number, len(all))
	}
	for i := range u.counts { // a member may have to apply what others have committed
		registry := openRecords(u.t, u.g.Database(i).URL())
		u.do(fmt.Sprintf("member %d has every T that was acknowledged", i), func(ctx context.Context) error {
			all, err := registry.List(ctx)
			stored := map[int64]int64{}
			for _, r := range all {
				stored[r.Number] = r.Bound
			}
			for number, top := range tops {
				if stored[number] < top {
					err = errors.Join(err, fmt.Errorf("number %d: T is %d, and %d was acknowledged", number, stored[number], top))
				}
			}
			return err
		})
	}
}
