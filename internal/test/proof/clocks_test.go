package proof_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/port"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// reachableAt makes the node listen at the address that it advertises, so that its
// peers can ask it for the time.
func (n *node) reachableAt(t *testing.T) {
	t.Helper()
	addr := port.Unused(t)
	for i, flag := range n.args {
		if flag == "--http-addr" || flag == "--snowflake-address" {
			n.args[i+1] = addr
		}
	}
}

// TestThirdNodeIsAhead: two nodes run; a third one, ten minutes ahead, starts last: it
// refuses and names the offset and the peers. When its clock is right, it serves.
func TestThirdNodeIsAhead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *registry) {
		var peers []string
		for _, name := range []string{"a", "b"} {
			n := r.worker(t, name, "10.5.0.1:1")
			n.args[slices.Index(n.args, "--snowflake-lease")+1] = "20s" // an announcement outlives a busy moment
			n.reachableAt(t)
			n.start(t)
			n.waitReady(t)
			peers = append(peers, strings.TrimPrefix(n.address(), "http://"))
		}
		r.waitRenewed(t) // before the first renewal each has announced itself
		c := r.worker(t, "c", "10.5.0.1:1")
		c.reachableAt(t)
		moved := c.steer(t)
		moved.Set(10 * time.Minute)
		c.start(t)
		var text string
		names := func() bool {
			_, text = c.state(t)
			for _, want := range append(peers, "ahead of the median of the 2 peers", "clock is 10m0", "+600.") {
				if !strings.Contains(text, want) {
					return false
				}
			}
			return true
		}
		if !holdsWithin(30*time.Second, names) {
			t.Errorf("/readyz does not name offset and peers %v: %s", peers, text)
		}
		if ids, _ := c.take(t, 1); ids != nil {
			t.Errorf("it issued %v", ids)
		}
		moved.Set(0)
		c.kill()
		c.start(t)
		c.waitReady(t)
	})
}

// waitRenewed returns when each owner has raised its T.
func (r *registry) waitRenewed(t *testing.T) {
	t.Helper()
	bounds := func() map[int64]int64 {
		var list struct {
			Workers []struct {
				Number int64 `json:"worker"`
				Bound  int64 `json:"bound,string"`
			} `json:"workers"`
		}
		out := mustLeaf(t, append([]string{"worker", "list", "--json"}, r.flags(r.addr)...)...)
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		found := map[int64]int64{}
		for _, w := range list.Workers {
			found[w.Number] = w.Bound
		}
		return found
	}
	first := bounds()
	if len(first) == 0 {
		t.Fatal("no number has an owner")
	}
	waitFor(t, 30*time.Second, "renewal of each owner", func() bool {
		now := bounds()
		for number, bound := range first {
			if now[number] <= bound {
				return false
			}
		}
		return true
	})
}

// TestClockJumpsByAYear: the running node answers with a clock error, its T stays
// where it was, and it serves again when the clock is back.
func TestClockJumpsByAYear(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *registry) {
		n := r.worker(t, "node", "10.6.0.1:8080")
		moved := n.steer(t)
		n.start(t)
		n.waitReady(t)
		ids := newLedger()
		first, why := n.take(t, 1000)
		if first == nil {
			t.Fatal(why)
		}
		ids.add("key", first)
		moved.Set(365 * 24 * time.Hour)
		waitFor(t, 20*time.Second, "clock error", func() bool {
			_, why = n.take(t, 1)
			return strings.Contains(why, "the wall clock jumped")
		})
		time.Sleep(time.Second) // two renewals
		var shown struct {
			Bound int64 `json:"bound,string"`
		}
		out := mustLeaf(t, append([]string{"worker", "show", fmt.Sprint(workerOf(first[0])), "--json"}, r.flags(r.addr)...)...)
		if err := json.Unmarshal([]byte(out), &shown); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if ahead := time.Until(time.UnixMilli(shown.Bound)); shown.Bound == 0 || ahead > 2*horizon {
			t.Errorf("T lies %v ahead: the number is burnt", ahead)
		}
		moved.Set(0)
		var second []int64
		waitFor(t, 20*time.Second, "recovery", func() bool {
			second, _ = n.take(t, 1000)
			return second != nil
		})
		ids.add("key", second)
		if ahead := millisOf(second[len(second)-1]) - time.Now().UnixMilli(); ahead > 0 {
			t.Errorf("the first ID after the jump lies %d ms in the future", ahead)
		}
		if workerOf(first[0]) != workerOf(second[0]) {
			t.Errorf("worker ID %d became %d: its number was burnt", workerOf(first[0]), workerOf(second[0]))
		}
		ids.check(t)
	})
}

// TestConfirmClockAsTheAlarmSays: the clock of a running node is moved ahead for good. The
// alarm names the command, which is typed literally. Then the node goes on, and no ID repeats.
func TestConfirmClockAsTheAlarmSays(t *testing.T) {
	t.Parallel()
	n := alone["sqlite"].worker(t, "node", "10.7.0.1:8080")
	moved := n.steer(t)
	n.start(t)
	n.waitReady(t)
	ids := newLedger()
	first, why := n.take(t, 1000)
	if first == nil {
		t.Fatal(why)
	}
	ids.add("key", first)
	moved.Set(time.Hour)
	says := regexp.MustCompile(`if it is right now, run: leaf (worker confirm-clock)`)
	var typed []string
	waitFor(t, 20*time.Second, "the alarm", func() bool {
		typed = says.FindStringSubmatch(n.tail())
		return typed != nil
	})
	mustLeaf(t, append(strings.Fields(typed[1]), "--data-dir", n.dir)...)
	waitFor(t, 20*time.Second, "recovery", func() bool {
		second, _ := n.take(t, 1000)
		ids.add("key", second)
		return second != nil
	})
}

// TestLeaderIsKilled: of three ZooKeeper servers the leader dies, again and again; no
// client of the node notices.
func TestLeaderIsKilled(t *testing.T) {
	t.Parallel()
	rounds := long.Load(2, 20)
	e := server.OwnZooKeeper(t, 3)
	r := ready(t, &registry{addr: e.Addr(0), fixed: true, flags: func(string) []string {
		return []string{"--snowflake-registry", "zookeeper", "--snowflake-registry-address", strings.Join(e.Servers(), ","), "--snowflake-name", "leader"}
	}})
	n := r.worker(t, "node", "10.7.0.1:8080")
	n.start(t)
	n.waitReady(t)
	ids := newLedger()
	failures := 0
	for round := range rounds {
		leader, err := e.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e.Kill(leader)
		for end := time.Now().Add(2 * horizon); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			got, why := n.take(t, 10)
			if got == nil {
				failures++
				t.Errorf("round %d: %s", round, why)
				break
			}
			ids.add("key", got)
		}
		if err := e.Restart(t.Context(), leader); err != nil {
			t.Fatal(err)
		}
		if err := e.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ids.check(t)
	t.Logf("%d IDs, %d failures in %d kills", ids.len(), failures, rounds)
}
