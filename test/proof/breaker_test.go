package proof_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// breaker breaks a cluster under its clients' load, and repairs it. What it does, and in
// which order, comes from a seed.
type breaker struct {
	m       *members
	callers *callers
	rng     *rand.Rand
	began   time.Time

	repairs sync.WaitGroup
	mu      sync.Mutex
	came    map[string]int // faults by kind
	busy    map[string]bool
}

// kinds of faults. try begins one, which lasts about as long as told, or returns false
// if it cannot be now.
var kinds = []struct {
	name    string
	longest time.Duration
	try     func(n *breaker, t *testing.T, b *member, lasts time.Duration) bool
}{
	{"killed", 1500 * time.Millisecond, (*breaker).killed},
	{"frozen", 2 * time.Second, (*breaker).frozen},
	{"drained", time.Second, (*breaker).drained},
	{"zone killed", time.Second, (*breaker).zoneKilled},
	{"slow to clients", 2 * time.Second, (*breaker).slowToClients},
	{"slow to database", 2 * time.Second, (*breaker).slowToDatabase},
	{"directory stopped", 5 * time.Second, (*breaker).directoryStopped},
}

// seed is LEAF_SEED, else the time's.
func seed(t *testing.T) uint64 {
	s, err := strconv.ParseUint(os.Getenv("LEAF_SEED"), 10, 64)
	if err != nil {
		s = uint64(time.Now().UnixNano()) % 1_000_000
	}
	t.Logf("LEAF_SEED=%d draws the same faults", s)
	return s
}

// run breaks things for so long, each kind once first, and returns when all is repaired.
func (n *breaker) run(t *testing.T, lasts time.Duration) {
	n.began, n.came, n.busy = time.Now(), map[string]int{}, map[string]bool{}
	deck := n.rng.Perm(len(kinds))
	for first := len(deck); time.Since(n.began) < lasts || first > 0 && time.Since(n.began) < 3*lasts; {
		if len(deck) == 0 {
			deck = n.rng.Perm(len(kinds))
		}
		kind, b := kinds[deck[0]], n.m.all[n.rng.IntN(len(n.m.all))]
		length := kind.longest/10 + time.Duration(n.rng.Int64N(int64(kind.longest*9/10)))
		for !kind.try(n, t, b, length) { // somebody has to come back first
			if time.Since(n.began) > 3*lasts {
				t.Logf("%s of %s could not begin", kind.name, b.name)
				first = 0
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Logf("%6d ms: %s %s for %v", time.Since(n.began).Milliseconds(), b.name, kind.name, length.Round(time.Millisecond))
		n.came[kind.name]++
		deck, first = deck[1:], first-1
		time.Sleep(time.Duration(200+n.rng.IntN(400)) * time.Millisecond)
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

func (n *breaker) killed(t *testing.T, b *member, lasts time.Duration) bool {
	if !n.m.take(false, b) {
		return false
	}
	n.m.crash(b)
	n.after(lasts, func() { n.m.begin(t, b) })
	return true
}

func (n *breaker) zoneKilled(t *testing.T, _ *member, lasts time.Duration) bool {
	var zone []*member
	for _, b := range n.m.all {
		if b.zone == ownZone {
			zone = append(zone, b)
		}
	}
	if !n.m.take(true, zone...) {
		return false
	}
	for _, b := range zone {
		n.m.crash(b)
		n.after(lasts, func() { n.m.begin(t, b) })
	}
	return true
}

func (n *breaker) frozen(t *testing.T, b *member, lasts time.Duration) bool {
	if !n.m.take(false, b) {
		return false
	}
	b.signal(t, syscall.SIGSTOP)
	n.after(lasts, func() {
		b.signal(t, syscall.SIGCONT)
		n.m.back(b)
	})
	return true
}

// drained: the delay before the end is too short for some clients to move, on purpose.
func (n *breaker) drained(t *testing.T, b *member, lasts time.Duration) bool {
	if !n.m.take(false, b) {
		return false
	}
	n.after(0, func() {
		out, err := leaf(t, "drain", "--data-dir", b.dir, "--delay", lasts.String())
		if err != nil {
			t.Errorf("drain %s: %v\n%s", b.name, err, out)
		}
		b.front.Refuse()
		b.stop()
		n.m.begin(t, b)
	})
	return true
}

func (n *breaker) slowToClients(t *testing.T, b *member, lasts time.Duration) bool {
	if !n.alone("front " + b.name) {
		return false
	}
	b.front.Delay(time.Duration(5+n.rng.IntN(20)) * time.Millisecond)
	b.front.Jitter(10 * time.Millisecond)
	n.after(lasts, func() {
		b.front.Delay(0)
		b.front.Jitter(0)
		n.done("front " + b.name)
	})
	return true
}

func (n *breaker) slowToDatabase(t *testing.T, b *member, lasts time.Duration) bool {
	if !n.alone("back " + b.name) {
		return false
	}
	b.back.Delay(time.Duration(5+n.rng.IntN(40)) * time.Millisecond)
	n.after(lasts, func() {
		b.back.Delay(0)
		n.done("back " + b.name)
	})
	return true
}

// directoryStopped: meanwhile a process starts that knows the nodes from its file.
func (n *breaker) directoryStopped(t *testing.T, _ *member, lasts time.Duration) bool {
	if !n.alone("directory") {
		return false
	}
	n.callers.listed.stop(n.rng.IntN(2) == 0)
	n.repairs.Go(func() {
		end := time.Now().Add(lasts)
		_ = n.callers.startsFromFile(t) // noted as every caller's error
		time.Sleep(time.Until(end))
		n.callers.listed.back(t)
		n.done("directory")
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
