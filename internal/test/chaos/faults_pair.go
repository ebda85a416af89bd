package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// direct sends nodes to another server, as a program that manages a failover does, and ends
// their connections to the one before.
func (c *cluster) direct(addr string, nodes ...*node) {
	for _, n := range nodes {
		for _, what := range c.atDatabase {
			n.ways[what].each(func(p *proxy.Proxy) {
				p.Retarget(addr)
				p.Cut()
			})
		}
	}
}

// reserved is the sum of all max_id, which grows by each range.
func (c *cluster) reserved(ctx context.Context) (int64, error) { return reservedIn(ctx, c.database()) }

func reservedIn(ctx context.Context, d server.Database) (sum int64, err error) {
	db, err := open(d)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, "SELECT CAST(SUM(max_id) AS DECIMAL(30)) FROM leaf_alloc").Scan(&sum)
	return sum, err
}

// untilReserved waits until nodes have taken ranges.
func (c *cluster) untilReserved(ctx context.Context) error {
	const enough = 60 // of short and reborn, by all nodes, a dozen ranges
	before, err := c.reserved(ctx)
	if err != nil {
		return err
	}
	return poll(ctx, 20*time.Second, func(ctx context.Context) error {
		now, err := c.reserved(ctx)
		if err == nil && now < before+enough {
			err = fmt.Errorf("nodes took %d numbers, %d are waited for", now-before, enough)
		}
		return err
	})
}

// pairFaults are what happens to a primary and its standby while they stay what they
// are.
func (c *cluster) pairFaults(p *server.Pair) []fault {
	primary, standby := []target{c.everyNode("primary")}, []target{c.everyNode("standby")}
	of := func(name, about string, targets []target, member func() int, hold [2]time.Duration, do func(...int), undo func(context.Context, int) error) fault {
		return fault{
			name: name, about: about, group: ofServers, targets: targets, hold: hold,
			begin: func(context.Context, target, *rand.Rand) (func(context.Context) error, string, error) {
				i := member()
				do(i)
				return func(ctx context.Context) error {
					if err := undo(ctx, i); err != nil {
						return err
					}
					return p.Wait(ctx)
				}, "", nil
			},
		}
	}
	second := func() int { return 1 - p.Primary() }
	restart := func(ctx context.Context, i int) error { return p.Restart(ctx, i) }
	resume := func(_ context.Context, i int) error {
		p.Resume(i)
		return nil
	}
	return []fault{
		of("primary killed", "SIGKILL; it is started again on its data, no failover.", primary, p.Primary, seconds(1, 5), p.Kill, restart),
		of("primary frozen", "SIGSTOP; SIGCONT, no failover.", primary, p.Primary, seconds(1, 5), p.Pause, resume),
		of("standby killed", "SIGKILL; every commit waits until it is started again.", standby, second, seconds(1, 5), p.Kill, restart),
		of("standby frozen", "SIGSTOP; every commit waits until SIGCONT.", standby, second, seconds(1, 5), p.Pause, resume),
	}
}

// cleanFailover kills the primary and promotes the standby, which has every commit
// that was answered.
func (c *cluster) cleanFailover(p *server.Pair) fault {
	return fault{
		name: "failover", about: "the primary is killed and the standby promoted, which has every commit that was answered; the former primary is rebuilt.",
		group: ofServers, targets: []target{c.everyNode("pair")}, hold: seconds(2, 5), alone: true, extra: 6 * time.Second,
		begin: func(ctx context.Context, _ target, _ *rand.Rand) (func(context.Context) error, string, error) {
			p.Kill(p.Primary())
			if err := p.Promote(ctx); err != nil {
				return nil, "", err
			}
			c.direct(p.Addr(p.Primary()), c.nodes...)
			return p.Rebuild, "", nil
		},
	}
}

// lossyFailover promotes a standby that has missed commits which nodes were told of.
func (c *cluster) lossyFailover(p *server.Pair) fault {
	return fault{
		name:  "failover that loses commits",
		about: "the standby is detached, nodes take ranges, the primary is killed and the standby promoted; the former primary is rebuilt and every tag repaired as the alarms say.",
		group: ofServers, targets: []target{c.everyNode("pair")}, hold: seconds(2, 5), alone: true, extra: 6 * time.Second,
		begin: func(ctx context.Context, _ target, _ *rand.Rand) (func(context.Context) error, string, error) {
			if err := p.Detach(ctx); err != nil {
				return nil, "", err
			}
			if err := c.untilReserved(ctx); err != nil {
				return nil, "", err
			}
			p.Kill(p.Primary())
			if err := p.Promote(ctx); err != nil {
				return nil, "", err
			}
			c.direct(p.Addr(p.Primary()), c.nodes...)
			lost, err := p.Lost(ctx)
			if err == nil && lost < 1 {
				err = fmt.Errorf("%d commits were lost: the fault did not happen", lost)
			}
			return func(ctx context.Context) error {
				if err := p.Rebuild(ctx); err != nil {
					return err
				}
				return c.repair(ctx, c.names()...)
			}, fmt.Sprintf("%d commits lost", lost), err
		},
	}
}

// split is how many numbers were reserved on each side.
type split struct{ former, new int64 }

func bothSides(ctx context.Context, p *server.Pair) (s split, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if s.former, err = reservedIn(ctx, p.Database(1-p.Primary())); err != nil {
		return s, fmt.Errorf("former primary: %w", err)
	}
	s.new, err = reservedIn(ctx, p.Database(p.Primary()))
	return s, err
}

// splitBrain promotes the standby while one node goes on with the former primary.
func (c *cluster) splitBrain(p *server.Pair) fault {
	return fault{
		name:  "split brain",
		about: "the standby is detached and promoted, the former primary goes on accepting the writes of one node; then that node is sent to the new one, the former primary is rebuilt and every tag repaired as the alarms say.",
		group: ofServers, targets: c.nodeTargets(), hold: seconds(3, 8), alone: true, extra: 7 * time.Second,
		begin: func(ctx context.Context, t target, _ *rand.Rand) (func(context.Context) error, string, error) {
			if err := p.Detach(ctx); err != nil {
				return nil, "", err
			}
			if err := p.Promote(ctx); err != nil {
				return nil, "", err
			}
			for i, n := range c.nodes {
				if i != t.nodes[0] {
					c.direct(p.Addr(p.Primary()), n)
				}
			}
			before, err := bothSides(ctx, p)
			if err != nil {
				return nil, "", err
			}
			return func(ctx context.Context) error {
				c.direct(p.Addr(p.Primary()), c.nodes...)
				after, err := bothSides(ctx, p)
				if err != nil {
					return err
				}
				c.splits = append(c.splits, split{after.former - before.former, after.new - before.new})
				if err := p.Rebuild(ctx); err != nil {
					return err
				}
				return c.repair(ctx, c.names()...)
			}, t.name + " stays with the former primary", nil
		},
	}
}
