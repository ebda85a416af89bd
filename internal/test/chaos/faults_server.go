package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// everyNode is a target of all nodes.
func (c *cluster) everyNode(name string) target {
	t := target{name: name}
	for i := range c.nodes {
		t.nodes = append(t.nodes, i)
	}
	return t
}

// instanceFaults are what happens to a database of one server.
func (c *cluster) instanceFaults(db *server.Instance) []fault {
	all := []target{c.everyNode("database")}
	return []fault{
		{
			name: "database killed", about: "SIGKILL; it is started again on its data.",
			group: ofServers, targets: all, hold: seconds(1, 6),
			begin: func(context.Context, target, *rand.Rand) (func(context.Context) error, string, error) {
				db.Kill()
				return db.Restart, "", nil
			},
		},
		{
			name: "database stopped", about: "a clean stop; it is started again.",
			group: ofServers, targets: all, hold: seconds(1, 4),
			begin: func(context.Context, target, *rand.Rand) (func(context.Context) error, string, error) {
				db.Stop()
				return db.Restart, "", nil
			},
		},
		{
			name: "database frozen", about: "SIGSTOP; SIGCONT.",
			group: ofServers, targets: all, hold: seconds(2, 6),
			begin: func(context.Context, target, *rand.Rand) (func(context.Context) error, string, error) {
				db.Pause()
				return func(context.Context) error {
					db.Continue()
					return nil
				}, "", nil
			},
		},
	}
}

// members is a group of servers of one kind: an Ensemble, a Galera.
type members interface {
	Len() int
	Kill(nodes ...int)
	Pause(nodes ...int)
	Resume(nodes ...int)
	Restart(ctx context.Context, nodes ...int) error
	Wait(ctx context.Context, nodes ...int) error
}

// memberTargets are the members of a group. aimed says which nodes use a member.
func memberTargets(what string, m members, aimed func(i int) []int) []target {
	var all []target
	for i := range m.Len() {
		all = append(all, target{name: fmt.Sprintf("%s %d", what, i), nodes: aimed(i), index: i})
	}
	return all
}

// memberFaults are what happens to the members of a group.
func (c *cluster) memberFaults(what string, m members, targets []target) []fault {
	all := []target{c.everyNode("all of " + what)}
	return []fault{
		{
			name: what + ": member killed", about: "SIGKILL of one member; it is started again on its data.",
			group: ofServers, targets: targets, hold: seconds(1, 6),
			begin: func(_ context.Context, t target, _ *rand.Rand) (func(context.Context) error, string, error) {
				m.Kill(t.index)
				return func(ctx context.Context) error { return m.Restart(ctx, t.index) }, "", nil
			},
		},
		{
			name: what + ": member frozen", about: "SIGSTOP of one member; SIGCONT.",
			group: ofServers, targets: targets, hold: seconds(1, 6),
			begin: func(_ context.Context, t target, _ *rand.Rand) (func(context.Context) error, string, error) {
				m.Pause(t.index)
				return func(ctx context.Context) error {
					m.Resume(t.index)
					return m.Wait(ctx)
				}, "", nil
			},
		},
		{
			name: what + ": all killed", about: "SIGKILL of all members; they are started again.",
			group: ofServers, targets: all, hold: seconds(1, 5), extra: 2 * time.Second,
			begin: func(context.Context, target, *rand.Rand) (func(context.Context) error, string, error) {
				m.Kill()
				return func(ctx context.Context) error { return m.Restart(ctx) }, "", nil
			},
		},
	}
}

// ensembleFaults are those of members, and the end of a leader.
func (c *cluster) ensembleFaults(what string, e *server.Ensemble) []fault {
	nobody := func(int) []int { return nil } // each node knows all members
	targets := memberTargets(what, e, nobody)
	faults := append(c.memberFaults(what, e, targets), fault{
		name: what + ": leader killed", about: "SIGKILL of the member that leads; it is started again on its data.",
		group: ofServers, targets: []target{{name: what + " leader"}}, hold: seconds(1, 6),
		begin: func(ctx context.Context, _ target, _ *rand.Rand) (func(context.Context) error, string, error) {
			leader, err := e.Leader(ctx)
			if err != nil {
				return nil, "", err
			}
			e.Kill(leader)
			return func(ctx context.Context) error { return e.Restart(ctx, leader) }, fmt.Sprintf("member %d", leader), nil
		},
	})
	if c.apart {
		faults = append(faults, c.partitionFaults(what, e)...)
	}
	return faults
}

// partitionFaults are what happens between members. Nodes reach all of them all the
// time: one that was cut off from its peers answers, as long as it believes it may.
func (c *cluster) partitionFaults(what string, e *server.Ensemble) []fault {
	join := func(ctx context.Context) error {
		if err := e.Heal(ctx); err != nil {
			return err
		}
		return e.Wait(ctx)
	}
	leader := []target{{name: what + " leader"}}
	return []fault{
		{
			name: what + ": leader cut off", about: "the member that leads and the others do not reach one another, nodes reach all; the partition ends.",
			group: ofServers, targets: leader, hold: seconds(2, 7), extra: time.Second,
			begin: func(ctx context.Context, _ target, _ *rand.Rand) (func(context.Context) error, string, error) {
				i, err := e.Leader(ctx)
				if err != nil {
					return nil, "", err
				}
				return join, fmt.Sprintf("member %d", i), e.Partition(ctx, i)
			},
		},
		{
			name: what + ": leader mute", about: "one way: what the member that leads sends to the others vanishes, it hears them; the partition ends.",
			group: ofServers, targets: leader, hold: seconds(2, 6), extra: time.Second,
			begin: func(ctx context.Context, _ target, _ *rand.Rand) (func(context.Context) error, string, error) {
				i, err := e.Leader(ctx)
				if err != nil {
					return nil, "", err
				}
				for to := range e.Len() {
					if to != i {
						err = errors.Join(err, e.Sever(ctx, i, to))
					}
				}
				return join, fmt.Sprintf("member %d", i), err
			},
		},
		{
			name: what + ": no majority", about: "no member reaches another, nodes reach all; the partition ends.",
			group: ofServers, targets: []target{c.everyNode("all of " + what)}, hold: seconds(2, 5), extra: 2 * time.Second,
			begin: func(ctx context.Context, _ target, _ *rand.Rand) (func(context.Context) error, string, error) {
				return join, "", errors.Join(e.Partition(ctx, 0), e.Sever(ctx, 1, 2), e.Sever(ctx, 2, 1))
			},
		},
	}
}

// galeraFaults are those of members, of which each node uses its own, and a partition
// between them.
func (c *cluster) galeraFaults(g *server.Galera) []fault {
	targets := memberTargets("galera", g, func(i int) []int { return []int{i} })
	return append(c.memberFaults("galera", g, targets), fault{
		name: "galera: member isolated", about: "one member is cut off from the others, both ways, and its node still reaches it; the partition ends.",
		group: ofServers, targets: targets, hold: seconds(4, 8), extra: 3 * time.Second,
		begin: func(ctx context.Context, t target, _ *rand.Rand) (func(context.Context) error, string, error) {
			return func(ctx context.Context) error {
				if err := g.Rejoin(ctx, t.index); err != nil {
					return err
				}
				return g.Wait(ctx)
			}, "", g.Isolate(ctx, t.index)
		},
	})
}
