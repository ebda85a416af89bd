package proof_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
)

// TestKillsAndClockSteps: a node is killed with SIGKILL in mid-load, its clock is
// moved, its registry comes and goes, and it starts again, round after round. All IDs
// are distinct, and each round issues its share or names the rule that forbids it.
func TestKillsAndClockSteps(t *testing.T) {
	t.Parallel()
	rounds := long.Load(5, 200)
	each(t, func(t *testing.T, r *registry) { killAndStep(t, r, rounds) })
	for name, r := range alone {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of a round is waiting
			killAndStep(t, r, rounds)
		})
	}
}

func killAndStep(t *testing.T, r *registry, rounds int) {
	const share = 10_000
	steps := []time.Duration{-time.Second, -10 * time.Second, -time.Minute, time.Hour, 0}
	n := r.worker(t, "node", "10.2.0.1:8080")
	moved := n.steer(t)
	ids := newLedger()
	named := map[string]int{}
	var latest time.Duration
	for round := range rounds {
		offline := round%5 == 3 && n.link != nil
		if offline {
			n.cutOff(round%2 == 0)
		}
		n.start(t)
		stop := hammerAll(t, ids, n)
		want := ids.len() + share
		var why string
		settled := holdsWithin(30*time.Second, func() bool {
			if ids.len() >= want {
				return true
			}
			_, why = n.take(t, 1)
			return rule(why) != "" && time.Since(n.began) > 5*time.Second
		})
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // somewhere in mid-load
		n.kill()
		stop()
		switch got := ids.len() >= want; {
		case !settled:
			t.Fatalf("round %d: %d IDs missing and no rule named: %s", round, want-ids.len(), why)
		case !got && !offline && !r.fixed:
			t.Fatalf("round %d: the registry is there, other numbers are free, and it says: %s", round, why)
		case !got && !offline && rule(why) != floorAhead:
			t.Fatalf("round %d: the registry is there, and it says: %s", round, why)
		case !got:
			named[rule(why)]++
		}
		if offline {
			n.reconnect(t)
		}
		moved.Add(steps[rand.IntN(len(steps))])
		latest = max(latest, moved.Offset())
	}

	// The faults have ended and the clock has passed everything: whoever waited serves.
	moved.Set(latest + 3*horizon)
	n.start(t)
	stop, want := hammerAll(t, ids, n), ids.len()+share
	waitFor(t, time.Minute, "recovery", func() bool { return ids.len() >= want })
	n.kill()
	stop()
	t.Logf("%d IDs in %d rounds; refused by rule: %v", ids.len(), rounds, named)
	ids.check(t)
}

const floorAhead = "E, F: this clock is behind what was issued"

// rule returns which rule a refusal names, "" if none.
func rule(text string) string {
	for _, r := range []struct{ part, rule string }{
		{"may be used from", floorAhead},
		{"clock error", floorAhead},
		{"refused: claim a worker ID", "5, E: no claim without the registry"},
		{"time bound", "6: T is used up"},
		{"bound reached", "6: T is used up"},
	} {
		if strings.Contains(text, r.part) {
			return r.rule
		}
	}
	return ""
}

// holdsWithin polls a condition, one that takes long less often: some start a process, and the
// nodes need the processor, too.
func holdsWithin(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); ; {
		asked := time.Now()
		if holds() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(max(10*time.Millisecond, 4*time.Since(asked)))
	}
}

// TestTakeover: the registry is out of a node's reach for longer than its bound,
// while a second node takes the only number over, even if the first one stopped in the
// middle of a renewal. Every ID of the first lies below
// its T, every one of the second at or above, and the first serves again when the
// number is free.
func TestTakeover(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"partition", "pause"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, r *registry) { takeover(t, r, fault) })
		})
	}
}

func takeover(t *testing.T, r *registry, fault string) {
	// One number for two: the only one of the range, or that of one address.
	a := r.worker(t, "a", "10.3.0.1:8080", "--snowflake-worker-range", "7-7")
	b := r.worker(t, "b", "10.3.0.2:8080", "--snowflake-worker-range", "7-7", "--snowflake-standby")
	if r.fixed {
		a = r.worker(t, "a", "10.3.0.1:8080")
		b = r.worker(t, "b", "10.3.0.1:8080", "--snowflake-standby")
	}
	ids := newLedger()
	a.start(t)
	stop := hammerAll(t, ids, a)
	waitFor(t, 20*time.Second, "IDs of the first node", func() bool { return ids.len() > 20_000 })
	var resume func()
	if fault == "partition" {
		a.cutOff(true)
		resume = func() { a.reconnect(t) }
	} else {
		resume = a.pause(t)
	}
	b.start(t)
	var first []int64
	waitFor(t, time.Minute, "takeover", func() bool {
		first, _ = b.take(t, 1)
		return first != nil
	})
	resume()
	time.Sleep(2 * time.Second) // a notices
	stop()
	highest := ids.highest("key")
	if millisOf(highest) >= millisOf(first[0]) {
		t.Errorf("the first node issued at %d, the second from %d on", millisOf(highest), millisOf(first[0]))
	}
	if got, why := a.take(t, 1); got != nil {
		t.Errorf("the first node still issues %v", got)
	} else if !strings.Contains(why, "503") {
		t.Errorf("the first node says %s", why)
	}
	more, _ := b.take(t, 1000)
	ids.add("key", first)
	ids.add("key", more)
	b.stop()
	waitFor(t, time.Minute, "recovery of the first node", func() bool {
		got, _ := a.take(t, 1000)
		ids.add("key", got)
		return got != nil
	})
	ids.check(t)
}

// pause freezes the node. With a SQL registry it does so in the middle of a renewal,
// when the transaction holds the rows that the successor needs; the next statement
// arrives when the node wakes up.
func (n *node) pause(t *testing.T) (resume func()) {
	t.Helper()
	if !slices.Contains(n.args, "sql") {
		n.signal(t, syscall.SIGSTOP)
		return func() { n.signal(t, syscall.SIGCONT) }
	}
	renewing, awake := make(chan struct{}), make(chan struct{})
	wake := sync.OnceFunc(func() { close(awake) })
	t.Cleanup(wake)
	var once sync.Once
	n.link.SetHook(func(from proxy.Side, data []byte) proxy.Action {
		if from == proxy.Client && bytes.Contains(data, []byte("UPDATE leaf_worker SET")) {
			once.Do(func() {
				close(renewing)
				<-awake
			})
		}
		return proxy.Pass
	})
	select {
	case <-renewing:
	case <-time.After(20 * time.Second):
		t.Fatal("the node does not renew its claim")
	}
	n.signal(t, syscall.SIGSTOP)
	return func() {
		wake()
		n.signal(t, syscall.SIGCONT)
	}
}

// TestClaimIsTakenAway: an operator frees the number of a running node; the node stops
// issuing with it and claims another by itself.
func TestClaimIsTakenAway(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *registry) {
		n := r.worker(t, "node", "10.4.0.1:8080")
		n.start(t)
		n.waitReady(t)
		ids := newLedger()
		before, why := n.take(t, 1000)
		if before == nil {
			t.Fatal(why)
		}
		ids.add("key", before)
		mustLeaf(t, append([]string{"worker", "release", fmt.Sprint(workerOf(before[0]))}, r.flags(r.addr)...)...)
		waitFor(t, 10*time.Second, "loss that is noticed", func() bool {
			_, metrics := n.page(t, "/metrics")
			return strings.Contains(metrics, "leaf_snowflake_losses_total 1\n")
		})
		var after []int64
		waitFor(t, 30*time.Second, "new claim", func() bool {
			after, _ = n.take(t, 1000)
			return after != nil
		})
		ids.add("key", after)
		if _, metrics := n.page(t, "/metrics"); !strings.Contains(metrics, "leaf_snowflake_claims_total 2\n") {
			t.Errorf("the node serves without a second claim:\n%s", metrics)
		}
		ids.check(t)
	})
}

// TestRegistryIsWiped: everything is deleted under a running node, and another node,
// which knows nothing of it, starts on the empty registry for the same numbers. It
// waits until the first one's time has passed; the first one notices and claims again.
func TestRegistryIsWiped(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *registry) {
		a := r.worker(t, "a", "10.8.0.1:8080", "--snowflake-worker-range", "1-2")
		b := r.worker(t, "b", "10.8.0.2:8080", "--snowflake-worker-range", "1-2")
		ids := newLedger()
		a.start(t)
		stop := hammerAll(t, ids, a)
		waitFor(t, 20*time.Second, "IDs of the first node", func() bool { return ids.len() > 10_000 })
		r.wipe(t)
		wiped := time.Now()
		b.start(t)
		var first []int64
		waitFor(t, time.Minute, "the second node", func() bool {
			first, _ = b.take(t, 1000)
			return first != nil
		})
		if waited := time.Since(wiped); waited < horizon {
			t.Errorf("the second node served after %v, when the first could still be issuing", waited)
		}
		ids.add("key", first)
		waitFor(t, time.Minute, "recovery of the first node", func() bool {
			_, metrics := a.page(t, "/metrics")
			ok, _ := a.state(t)
			return ok && strings.Contains(metrics, "leaf_snowflake_losses_total 1\n")
		})
		stop()
		more, why := b.take(t, 1000)
		if more == nil {
			t.Error(why)
		}
		ids.add("key", more)
		ids.check(t)
	})
}
