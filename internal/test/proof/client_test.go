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
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// callerTime is the deadline of every call.
const callerTime = 2 * time.Second

// snowflakes is what the log of IDs calls the IDs of snowflake mode: they are one series,
// whatever name a caller gives.
const snowflakes = "snowflake mode"

// TestClientNeverNotices: three nodes in two zones on one MariaDB, 20 callers of both
// modes with the Go client in zone a, or 200 with LEAF_LONG. Nodes are killed, frozen and drained, alone and the
// whole zone at once, never the last one that lives; the network to nodes and database is
// slow; the registry of nodes and worker IDs stops. Every ID is distinct, no caller with a
// deadline of 2 s gets an error, and less than one request in a hundred leaves the zone
// while a node of it lives.
func TestClientNeverNotices(t *testing.T) {
	ran := long.Load(10*time.Second, 150*time.Second)
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
	file    string // the last list of nodes
	cluster string // that the nodes named in the directory
	machine *machine

	path string
	ids  *idlog.Writer

	calls atomic.Int64

	mu       sync.Mutex
	failures []failure
	workers  map[int64]bool // worker IDs that were seen

	// Of watch.
	remote   int64 // requests to other zones while a node of the own one lived
	counted  int64 // all requests meanwhile
	requests map[string]int64
}

// callersOf makes four clients, as four processes have them.
func callersOf(t *testing.T, m *members, r registryOfNodes, cached bool) *callers {
	t.Helper()
	c := &callers{
		m: m, listed: r, machine: watchMachine(t), file: filepath.Join(t.TempDir(), "nodes.json"), path: filepath.Join(t.TempDir(), "ids"),
		requests: map[string]int64{}, workers: map[int64]bool{},
	}
	var err error
	if c.ids, err = idlog.Create(c.path, idlog.Binary); err != nil {
		t.Fatal(err)
	}
	options := []client.Option{client.WithUniquenessCheck()}
	if cached {
		// A short span, so that fetches and faults meet.
		options = append(options, client.WithCache(cache.Config{Span: 200 * time.Millisecond}))
	}
	for range 4 {
		one, told := c.connect(t, options...)
		c.clients = append(c.clients, one)
		m.mu.Lock()
		m.readers = append(m.readers, told)
		m.mu.Unlock()
	}
	return c
}

// connect makes a client of the directory, which is closed at the end of the test.
func (c *callers) connect(t *testing.T, options ...client.Option) (*client.Client, *viaFronts) {
	t.Helper()
	d, err := directory.Open(c.listed.url)
	if err != nil {
		t.Fatal(err)
	}
	if c.cluster == "" {
		waitFor(t, 30*time.Second, "a node names its cluster in the directory", func() bool {
			list, _ := d.List(t.Context())
			for _, n := range list {
				c.cluster = n.Cluster
			}
			return c.cluster != ""
		})
	}
	nodes := &viaFronts{Directory: d, m: c.m}
	options = append(options, client.WithZone(ownZone), client.WithCluster(c.cluster), client.WithNodeFile(c.file), client.WithLogger(slog.New(slog.DiscardHandler)))
	one, err := client.New(nodes, options...)
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
	return one, nodes
}

func (c *callers) run(t *testing.T, ran time.Duration) {
	count := long.Load(20, 200)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var watchers, callers sync.WaitGroup
	watchers.Go(func() { c.watch(ctx) })
	waitFor(t, time.Minute, "clients that see all nodes", c.m.allFound)
	for i := range count {
		callers.Go(func() { c.call(ctx, i) })
	}
	n := &breaker{m: c.m, callers: c, schedule: newSchedule(seed(t))}
	n.run(t, ran)
	waitFor(t, time.Minute, "clients that see all nodes again", c.m.allFound)
	stop()
	callers.Wait()
	watchers.Wait()
	c.judge(t, n)
}

// call takes IDs in all ways until ctx ends.
func (c *callers) call(ctx context.Context, i int) {
	rng := rand.New(rand.NewPCG(uint64(i), 1))
	for ctx.Err() == nil {
		var from core.Issuer = c.clients[i%len(c.clients)]
		tag := []string{"seven", "thirteen", "thousand", ""}[rng.IntN(4)]
		series := tag
		if tag == "" {
			from, tag, series = c.clients[i%len(c.clients)].Snowflake(), fmt.Sprintf("key-%d", rng.IntN(5)), snowflakes
		}
		c.take(from, tag, series, 1+rng.IntN(40))
		pause := time.NewTimer(time.Duration(20+rng.IntN(40)) * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// take is one call: a batch of more than 20, else a single ID.
func (c *callers) take(from core.Issuer, tag, series string, count int) {
	// Not a context of the run's: its end must not look like an error.
	bounded, cancel := context.WithTimeout(context.Background(), callerTime)
	defer cancel()
	began := time.Now()
	var ranges []core.Range
	var err error
	if count > 20 {
		ranges, err = from.NextN(bounded, tag, count)
	} else {
		var id int64
		id, err = from.Next(bounded, tag)
		ranges = []core.Range{{Lo: id, Hi: id + 1}}
	}
	c.calls.Add(1)
	if err == nil {
		for _, r := range ranges {
			err = errors.Join(err, c.ids.Append(idlog.Record{Key: series, Lo: r.Lo, Hi: r.Hi - 1}))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failures = append(c.failures, failure{series, began, time.Now(), err})
	} else if series == snowflakes {
		c.workers[workerOf(ranges[0].Lo)] = true
	}
}

// startsFromFile makes a client while the directory is down, as a process that starts,
// and calls like all others.
func (c *callers) startsFromFile(t *testing.T) {
	one, _ := c.connect(t)
	c.take(one, "seven", "seven", 1)
	c.take(one.Snowflake(), "key", snowflakes, 1)
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
		home, remote := int64(0), int64(0)
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
					remote += more
				}
			}
		}
		if c.m.ownSince(last) {
			c.remote += remote
			c.counted += home + remote
		}
		last = began
		c.m.sight(states)
	}
}
