package proof_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
)

// fault is one thing that goes wrong.
type fault struct {
	kind   int // of kinds
	target int // of members.all, where the kind is about one node
	lasts  time.Duration
	degree float64       // how bad it is, 0 to 1, where that comes in degrees
	hangs  bool          // silence instead of a refusal, where both can be
	pause  time.Duration // from its begin to the next one
}

// kinds of faults. A caller's deadline is 2 s: what is frozen for longer never answers
// it. An entry in the registry ends after 10 s: an outage of the long run may outlast all
// of them. begin makes a fault happen, or returns false if it cannot be now.
var kinds = []struct {
	name    string
	longest time.Duration
	lasting time.Duration // longest of the long run, if that is more
	begin   func(n *breaker, t *testing.T, f fault) bool
}{
	{"killed", 1500 * time.Millisecond, 0, (*breaker).killed},
	{"frozen", 4 * time.Second, 0, (*breaker).frozen},
	{"drained", time.Second, 0, (*breaker).drained},
	{"zone killed", time.Second, 0, (*breaker).zoneKilled},
	{"zone frozen", 4 * time.Second, 0, (*breaker).zoneFrozen},
	{"slow to clients", 2 * time.Second, 0, (*breaker).slowToClients},
	{"slow to database", 2 * time.Second, 0, (*breaker).slowToDatabase},
	{"registry stopped", 5 * time.Second, 20 * time.Second, (*breaker).registryStopped},
}

// schedule is which faults come, in which order: a function of its seed alone. When they
// come follows the clock and what the nodes are able to stand.
type schedule struct {
	rng  *rand.Rand
	deck []int // kinds that are still to come before any comes again
}

func newSchedule(seed uint64) *schedule { return &schedule{rng: rand.New(rand.NewPCG(seed, 0))} }

// next draws as many numbers each time, so that no fault depends on the fate of another.
func (s *schedule) next() fault {
	if len(s.deck) == 0 {
		s.deck = s.rng.Perm(len(kinds))
	}
	f := fault{kind: s.deck[0], target: s.rng.IntN(3), degree: s.rng.Float64(), hangs: s.rng.IntN(2) == 0}
	longest := kinds[f.kind].longest
	if long.Asked() {
		longest = max(longest, kinds[f.kind].lasting)
	}
	f.lasts = longest/10 + time.Duration(s.rng.Int64N(int64(longest*9/10)))
	f.pause = time.Duration(200+s.rng.IntN(400)) * time.Millisecond
	s.deck = s.deck[1:]
	return f
}

// seed is PROOF_SEED, else the time's.
func seed(t *testing.T) uint64 {
	s, err := strconv.ParseUint(os.Getenv("PROOF_SEED"), 10, 64)
	if err != nil {
		s = uint64(time.Now().UnixNano()) % 1_000_000
	}
	t.Logf("PROOF_SEED=%d draws the same faults", s)
	return s
}

// TestSeedDrawsTheSameFaults: the seed that a run prints draws the faults of that run again.
func TestSeedDrawsTheSameFaults(t *testing.T) {
	first, again, other := newSchedule(7), newSchedule(7), newSchedule(8)
	same, all := 0, 20*len(kinds)
	came := map[int]int{}
	for range all {
		f := first.next()
		came[f.kind]++
		if g := again.next(); f != g {
			t.Fatalf("seed 7 draws %+v and %+v", f, g)
		}
		if f == other.next() {
			same++
		}
	}
	if same == all {
		t.Error("seeds 7 and 8 draw the same")
	}
	for kind, times := range came {
		if times != 20 {
			t.Errorf("%s came %d times, want 20", kinds[kind].name, times)
		}
	}
}

// breaker breaks a cluster under its clients' load, and repairs it.
type breaker struct {
	m        *members
	callers  *callers
	schedule *schedule
	began    time.Time

	repairs sync.WaitGroup
	mu      sync.Mutex
	came    map[string]int // faults by kind
	busy    map[string]bool
}

// run breaks things for so long, each kind once at least, and returns when all is
// repaired.
func (n *breaker) run(t *testing.T, lasts time.Duration) {
	n.began, n.came, n.busy = time.Now(), map[string]int{}, map[string]bool{}
	for len(n.came) < len(kinds) || time.Since(n.began) < lasts {
		f := n.schedule.next()
		name := kinds[f.kind].name
		for !kinds[f.kind].begin(n, t, f) { // somebody has to come back first
			if time.Since(n.began) > lasts+time.Minute {
				t.Errorf("%s of %s could not begin", name, n.m.all[f.target].name)
				n.repairs.Wait()
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Logf("%6d ms: %s (%s) for %v, degree %.2f, hangs %v", time.Since(n.began).Milliseconds(), name, n.m.all[f.target].name, f.lasts.Round(time.Millisecond), f.degree, f.hangs)
		n.came[name]++
		time.Sleep(f.pause)
	}
	n.repairs.Wait()
}

// after repairs when the fault has lasted.
func (n *breaker) after(lasts time.Duration, repair func()) {
	n.repairs.Go(func() {
		time.Sleep(lasts)
		repair()
	})
}

func (n *breaker) killed(t *testing.T, f fault) bool {
	return n.kill(t, f, false, n.m.all[f.target])
}

func (n *breaker) zoneKilled(t *testing.T, f fault) bool {
	return n.kill(t, f, true, n.m.zone(ownZone)...)
}

func (n *breaker) kill(t *testing.T, f fault, zone bool, gone ...*member) bool {
	if !n.m.take(zone, gone...) {
		return false
	}
	for _, b := range gone {
		n.m.crash(b)
		n.after(f.lasts, func() { n.m.begin(t, b) })
	}
	return true
}

func (n *breaker) frozen(t *testing.T, f fault) bool {
	return n.freeze(t, f, false, n.m.all[f.target])
}

func (n *breaker) zoneFrozen(t *testing.T, f fault) bool {
	return n.freeze(t, f, true, n.m.zone(ownZone)...)
}

func (n *breaker) freeze(t *testing.T, f fault, zone bool, gone ...*member) bool {
	if !n.m.take(zone, gone...) {
		return false
	}
	for _, b := range gone {
		b.signal(t, syscall.SIGSTOP)
		n.after(f.lasts, func() {
			b.signal(t, syscall.SIGCONT)
			n.m.back(t, b)
		})
	}
	return true
}

// drained: the delay before the end is too short for some clients to move, on purpose.
func (n *breaker) drained(t *testing.T, f fault) bool {
	b := n.m.all[f.target]
	if !n.m.take(false, b) {
		return false
	}
	n.after(0, func() {
		out, err := leaf(t, "drain", "--data-dir", b.dir, "--delay", f.lasts.String())
		if err != nil {
			t.Errorf("drain %s: %v\n%s", b.name, err, out)
		}
		b.front.Refuse()
		b.stop()
		n.m.begin(t, b)
	})
	return true
}

// slowToClients: less, there and back, than the 100 ms after which a client asks another
// zone, too.
func (n *breaker) slowToClients(_ *testing.T, f fault) bool {
	b := n.m.all[f.target]
	if !n.alone("front " + b.name) {
		return false
	}
	b.front.Delay(5*time.Millisecond + time.Duration(f.degree*float64(20*time.Millisecond))) // each way
	b.front.Jitter(10 * time.Millisecond)
	n.after(f.lasts, func() {
		b.front.Delay(0)
		b.front.Jitter(0)
		n.done("front " + b.name)
	})
	return true
}

func (n *breaker) slowToDatabase(_ *testing.T, f fault) bool {
	b := n.m.all[f.target]
	if !n.alone("back " + b.name) {
		return false
	}
	b.back.Delay(5*time.Millisecond + time.Duration(f.degree*float64(40*time.Millisecond)))
	n.after(f.lasts, func() {
		b.back.Delay(0)
		n.done("back " + b.name)
	})
	return true
}

// registryStopped: meanwhile a process starts that knows the nodes from its file.
func (n *breaker) registryStopped(t *testing.T, f fault) bool {
	if !n.alone("registry") {
		return false
	}
	n.callers.listed.stop(f.hangs)
	n.repairs.Go(func() {
		end := time.Now().Add(f.lasts)
		n.callers.startsFromFile(t)
		time.Sleep(time.Until(end))
		n.callers.listed.back(t)
		n.done("registry")
	})
	return true
}

// alone says whether this kind of fault is not there yet.
func (n *breaker) alone(what string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.busy[what]
	n.busy[what] = true
	return !was
}

func (n *breaker) done(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy[what] = false
}
