package proof_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	core "github.com/leaf-idgen/leaf" // leaf is the command here
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/client/directory"
	"github.com/leaf-idgen/leaf/idlog"
	"github.com/leaf-idgen/leaf/test/server"
)

const (
	// callerTime is the deadline of every call.
	callerTime = 2 * time.Second

	// findTime is how long a client may take to find a node that is back: its longest
	// ejection is 5 s, and then it asks.
	findTime = 7 * time.Second
)

// TestClientNeverNotices: three nodes in two zones on one MariaDB, 200 callers with the
// Go client in zone a. Nodes are killed, frozen and drained, alone and the whole zone at
// once, never the last one; the network to nodes and database is slow, the directory of
// nodes stops. Every ID is distinct, no caller with a deadline of 2 s gets an error, and
// less than one request in a hundred leaves the zone while a node of it lives.
func TestClientNeverNotices(t *testing.T) {
	ran := 15 * time.Second
	if server.Long() {
		ran = 150 * time.Second
	}
	for _, tt := range []struct {
		name   string
		cached bool
		nodes  func(t *testing.T, store server.Database) registryOfNodes
	}{
		{"calls, nodes listed in MariaDB", false, inStore},
		{"cache, nodes listed in etcd", true, func(t *testing.T, _ server.Database) registryOfNodes { return inEtcd(t) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := server.MariaDB(t)
			mustLeaf(t, "schema", "apply", "--store", store.URL())
			for tag, step := range map[string]string{"seven": "700", "thirteen": "1300", "thousand": "1000"} {
				mustLeaf(t, "tag", "create", tag, "--step", step, "--store", store.URL())
			}
			r := tt.nodes(t, store)
			callersOf(t, newMembers(t, store, r.flags...), r, tt.cached).run(t, ran)
		})
	}
}

// callers are applications that take IDs, and everything that they were given.
type callers struct {
	m       *members
	listed  registryOfNodes
	clients []*client.Client
	options []client.Option
	file    string // the last list of nodes

	path string
	ids  *idlog.Writer

	calls   atomic.Int64
	started atomic.Bool // faults have begun: errors count

	mu       sync.Mutex
	failures []failure
	abroad   int64 // requests to other zones while a node of the own one lived
	counted  int64 // all requests meanwhile
	requests map[string]int64
}

type failure struct {
	tag  string
	at   time.Time
	took time.Duration
	err  error
}

// callersOf makes four clients, as four processes have them.
func callersOf(t *testing.T, m *members, r registryOfNodes, cached bool) *callers {
	t.Helper()
	c := &callers{m: m, listed: r, file: filepath.Join(t.TempDir(), "nodes.json"), path: filepath.Join(t.TempDir(), "ids"), requests: map[string]int64{}}
	var err error
	if c.ids, err = idlog.Create(c.path, idlog.Binary); err != nil {
		t.Fatal(err)
	}
	if cached {
		// A short span, so that fetches and faults meet.
		c.options = append(c.options, client.WithCache(cache.Config{Span: 200 * time.Millisecond}))
	}
	for range 4 {
		c.clients = append(c.clients, c.connect(t, append(c.options, client.WithUniquenessCheck())...))
	}
	return c
}

// connect makes a client of the directory, which is closed at the end of the test.
func (c *callers) connect(t *testing.T, options ...client.Option) *client.Client {
	t.Helper()
	d, err := directory.Open(c.listed.url)
	if err != nil {
		t.Fatal(err)
	}
	options = append(options, client.WithZone(ownZone), client.WithNodeFile(c.file), client.WithLogger(slog.New(slog.DiscardHandler)))
	one, err := client.New(viaFronts{d, c.m}, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := errors.Join(one.Close(ctx), d.Close()); err != nil {
			t.Errorf("close a client: %v", err)
		}
	})
	return one
}

func (c *callers) run(t *testing.T, ran time.Duration) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var machine atomic.Int64 // the longest that a timer of ours was late
	var watchers, callers sync.WaitGroup
	watchers.Go(func() { watchTimers(ctx, &machine) })
	watchers.Go(func() { c.watch(ctx) })
	for i := range 200 {
		callers.Go(func() { c.call(ctx, i) })
	}
	waitFor(t, time.Minute, "clients that see all nodes", c.m.allFound)
	c.started.Store(true)

	began := time.Now()
	n := &breaker{m: c.m, callers: c, rng: rand.New(rand.NewPCG(seed(t), 0))}
	n.run(t, ran)
	waitFor(t, time.Minute, "clients that see all nodes again", c.m.allFound)
	stop()
	callers.Wait()
	watchers.Wait()

	late := time.Duration(machine.Load())
	c.judge(t, n, time.Since(began), late)
}

// call takes IDs in all ways until ctx ends.
func (c *callers) call(ctx context.Context, i int) {
	from := c.clients[i%len(c.clients)]
	rng := rand.New(rand.NewPCG(uint64(i), 1))
	for ctx.Err() == nil {
		tag := []string{"seven", "thirteen", "thousand"}[rng.IntN(3)]
		// Not a context of the run's: its end must not look like an error.
		bounded, cancel := context.WithTimeout(context.Background(), callerTime)
		began := time.Now()
		var ranges []core.Range
		var err error
		if count := 1 + rng.IntN(40); count > 20 {
			ranges, err = from.NextN(bounded, tag, count)
		} else {
			var id int64
			id, err = from.Next(bounded, tag)
			ranges = []core.Range{{Lo: id, Hi: id + 1}}
		}
		cancel()
		c.calls.Add(1)
		c.note(tag, ranges, err, began)
		pause := time.NewTimer(time.Duration(20+rng.IntN(40)) * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

func (c *callers) note(tag string, ranges []core.Range, err error, began time.Time) {
	if err == nil {
		for _, r := range ranges {
			err = errors.Join(err, c.ids.Append(idlog.Record{Key: tag, Lo: r.Lo, Hi: r.Hi - 1}))
		}
	}
	if err != nil && c.started.Load() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failures = append(c.failures, failure{tag, began, time.Since(began), err})
	}
}

// watch looks at what the clients see and whom they ask.
func (c *callers) watch(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	asked := make([]map[string]int64, len(c.clients))
	for i := range asked {
		asked[i] = map[string]int64{}
	}
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		var states [][]client.NodeStats
		home, abroad := int64(0), int64(0)
		for i, one := range c.clients {
			nodes := one.Stats().Nodes
			states = append(states, nodes)
			for _, n := range nodes {
				more := n.Requests - asked[i][n.Address]
				if more < 0 {
					more = n.Requests // it left the list and came back
				}
				asked[i][n.Address] = n.Requests
				c.requests[n.Zone] += more
				if n.Zone == ownZone {
					home += more
				} else {
					abroad += more
				}
			}
		}
		if c.started.Load() && c.m.ownSince(last) {
			c.abroad += abroad
			c.counted += home + abroad
		}
		last = began
		c.m.sight(states)
	}
}

// watchTimers measures how late a timer is: nothing but the machine can make it so.
func watchTimers(ctx context.Context, worst *atomic.Int64) {
	const tick = 10 * time.Millisecond
	for ctx.Err() == nil {
		from := time.Now()
		time.Sleep(tick)
		if over := int64(time.Since(from) - tick); over > worst.Load() {
			worst.Store(over)
		}
	}
}

// judge looks at everything that the run has left.
func (c *callers) judge(t *testing.T, n *breaker, ran, late time.Duration) {
	t.Helper()
	if err := c.ids.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := idlog.Check(context.Background(), idlog.Options{AnyOrder: true}, c.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Duplicates {
		t.Errorf("tag %q: IDs given out twice: %+v", d.Key, d)
	}
	distinct := int64(0)
	for _, k := range report.Keys {
		distinct += int64(k.Distinct)
	}
	share := float64(c.abroad) / float64(max(c.counted, 1))
	t.Logf("%v: %d calls, %d IDs, all distinct: %v; %d errors; faults %v; %d of %d requests left the zone (%.2f %%) while it lived; nodes were found after at most %v; timers late by at most %v",
		ran.Round(time.Millisecond), c.calls.Load(), distinct, len(report.Duplicates) == 0, len(c.failures), n.came, c.abroad, c.counted, 100*share, c.m.slowest.Round(time.Millisecond), late.Round(time.Millisecond))

	if c.calls.Load() < 1000 || c.requests["b"] == 0 || c.counted < 200 {
		t.Errorf("%d calls, requests %v, %d counted: that proves nothing", c.calls.Load(), c.requests, c.counted)
	}
	for _, one := range c.clients {
		if seen := one.Stats().Violations; seen > 0 {
			t.Errorf("a client saw %d answers that repeat IDs or step back", seen)
		}
	}
	for _, kind := range kinds {
		if n.came[kind.name] == 0 {
			t.Errorf("no fault %q: nothing is proven about it", kind.name)
		}
	}
	if late > 500*time.Millisecond {
		t.Logf("NOT JUDGED: the machine is too busy for times; %d errors", len(c.failures))
		for _, f := range c.failures[:min(len(c.failures), 10)] {
			t.Logf("%s, %v after the start, after %v: %v", f.tag, f.at.Sub(n.began).Round(time.Millisecond), f.took.Round(time.Millisecond), f.err)
		}
		return
	}
	for _, f := range c.failures[:min(len(c.failures), 10)] {
		t.Errorf("a caller got an error: %s, %v after the start, after %v: %v", f.tag, f.at.Sub(n.began).Round(time.Millisecond), f.took.Round(time.Millisecond), f.err)
	}
	if share >= 0.01 {
		t.Errorf("%.2f %% of the requests left the zone, want less than 1 %%", 100*share)
	}
	if c.m.slowest > findTime {
		t.Errorf("a node that was back was found after %v, want at most %v", c.m.slowest, findTime)
	}
}

// startsFromFile makes a client while the directory is down, as a process that starts.
func (c *callers) startsFromFile(t *testing.T) error {
	one := c.connect(t)
	ctx, cancel := context.WithTimeout(context.Background(), callerTime)
	defer cancel()
	began := time.Now()
	id, err := one.Next(ctx, "seven")
	if err != nil {
		err = fmt.Errorf("a client that starts without the directory: %w", err)
	}
	c.note("seven", []core.Range{{Lo: id, Hi: id + 1}}, err, began)
	return err
}
