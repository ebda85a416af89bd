package proof_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// call is one request for a tag in strict order that was answered.
type call struct {
	began, ended time.Duration
	id           int64
}

// calls are those of one tag, of all clients.
type calls struct {
	mu   sync.Mutex
	all  []call
	late []stand // those of callers that waited for longer than deadline
}

// Bounds of how long a caller waits, with all its attempts.
const (
	deadline  = 5 * time.Second  // whatever one node does
	lateAfter = 20 * time.Second // also where the machine has much else to do
)

// ask lets a caller ask a node for the next ID of a path until ctx ends. An attempt that fails, or takes longer than the caller's patience, is made
// again at the next node, where the caller stays. A caller with much patience gets what a node answers that stood still.
func (c *calls) ask(ctx context.Context, began time.Time, path string, nodes []*node, patience time.Duration) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	wanted := time.Since(began)
	for at := 0; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		start := time.Since(began)
		_, ids, err := fetch(ctx, client, nodes[at%len(nodes)].address()+path, 1)
		end := time.Since(began)
		if err != nil || len(ids) == 0 {
			at++
			continue
		}
		c.mu.Lock()
		c.all = append(c.all, call{start, end, ids[0]})
		if patience < deadline && end-wanted > deadline {
			c.late = append(c.late, stand{began.Add(wanted), began.Add(end)})
		}
		c.mu.Unlock()
		wanted = time.Since(began)
	}
}

// check fails for each call that began after another one had ended, and got no larger ID, and for each that came too late.
func (c *calls) check(t *testing.T, tag string, m *machine, began time.Time) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	byEnd := slices.Clone(c.all)
	slices.SortFunc(byEnd, func(a, b call) int { return int(a.ended - b.ended) })
	slices.SortFunc(c.all, func(a, b call) int { return int(a.began - b.began) })
	ended, highest := 0, int64(0)
	for _, late := range c.all {
		for ; byEnd[ended].ended < late.began; ended++ {
			highest = max(highest, byEnd[ended].id)
		}
		if late.id <= highest {
			t.Errorf("%s: %d, asked for at %v, and %d was answered before", tag, late.id, late.began, highest)
		}
	}
	for _, w := range c.late {
		if w.lasted() > lateAfter || !m.stood(standstill, w.from, w.to) && !m.starved(time.Since(began)) {
			t.Errorf("%s: a caller had no answer for %v, from %v on; the machine: %s", tag, w.lasted(), w.from.Sub(began), m)
		}
	}
	if len(c.all) < 80 {
		t.Errorf("%s: only %d calls were answered", tag, len(c.all))
	}
}

// await returns when callers have got more answers for all tags, or entities.
func await(t *testing.T, all map[string]*calls, what string) {
	t.Helper()
	answered := func() (least int) {
		least = 1 << 30
		for _, c := range all {
			c.mu.Lock()
			least = min(least, len(c.all))
			c.mu.Unlock()
		}
		return least
	}
	from := answered()
	waitFor(t, 20*time.Second, "answers for all tags "+what, func() bool { return answered() > from+40 })
}

// TestStrictOrder: callers ask three nodes for tags in strict order, which all of them own some of. One node is killed and
// begins again, the next one stands still for longer than its lease, and the last one is drained. The IDs of
// each tag are in real-time order, and no caller is left waiting.
func TestStrictOrder(t *testing.T) {
	t.Parallel()
	db := server.MariaDB(t)
	mustLeaf(t, "schema", "apply", "--store", db.URL())
	var nodes []*node
	for i := range 3 {
		n := newNode(t, fmt.Sprint("n", i), db.URL())
		n.args = append(n.args, "--segment-sync-interval", "1s")
		n.start(t)
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		n.waitReady(t)
	}
	tags, m := map[string]*calls{}, watchMachine(t)
	for i := range 4 {
		tag := fmt.Sprint("order", i)
		mustLeaf(t, "tag", "create", tag, "--step", "100", "--fixed-step", "--order", "strict", "--store", db.URL())
		tags[tag] = &calls{}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	began := time.Now()
	var clients sync.WaitGroup
	for tag, c := range tags {
		for i := range nodes {
			from := slices.Concat(nodes[i:], nodes[:i])
			clients.Go(func() { c.ask(ctx, began, "/api/segment/get/"+tag, from, 2*time.Second) })
		}
		clients.Go(func() { c.ask(ctx, began, "/api/segment/get/"+tag, nodes[1:], time.Minute) })
	}
	more := func(what string) {
		t.Helper()
		await(t, tags, what)
	}
	more("at the start")
	nodes[0].kill()
	more("after a crash")
	nodes[0].start(t)
	more("after a restart")
	nodes[1].signal(t, syscall.SIGSTOP)
	time.Sleep(4 * time.Second) // longer than the lease and the margin
	more("beside a node that stands still")
	nodes[1].signal(t, syscall.SIGCONT)
	more("after it went on")
	mustLeaf(t, "drain", "--data-dir", nodes[2].dir)
	more("after a drain")
	stop()
	clients.Wait()
	for tag, c := range tags {
		c.check(t, tag, m, began)
	}
}
