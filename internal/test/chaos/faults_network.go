package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/proxy"
)

// networkFaults are what happens between nodes and one kind of server: what is
// "database", "registry" or "fence". Each node has its own ways, so each can be cut
// off alone; or all of them at once.
func (c *cluster) networkFaults(what string) []fault {
	targets, all := c.nodeTargets(), target{name: "all nodes"}
	for i := range c.nodes {
		all.nodes = append(all.nodes, i)
	}
	targets = append(targets, all)
	broken := func(name, about string, hold [2]time.Duration, do func(*proxy.Proxy, *rand.Rand)) fault {
		return fault{
			name: what + ": " + name, about: about, group: ofNetworks, targets: targets, hold: hold,
			begin: func(_ context.Context, t target, chance *rand.Rand) (func(context.Context) error, string, error) {
				for _, i := range t.nodes {
					c.nodes[i].ways[what].each(func(p *proxy.Proxy) { do(p, chance) })
				}
				return func(context.Context) error {
					for _, i := range t.nodes {
						if err := c.nodes[i].ways[what].open(); err != nil {
							return err
						}
					}
					return nil
				}, "", nil
			},
		}
	}
	return []fault{
		broken("partition", "what either side sends vanishes, connections stay open; they are cut at the end.", seconds(2, 7),
			func(p *proxy.Proxy, _ *rand.Rand) { p.Swallow(proxy.Client, proxy.Server) }),
		broken("requests lost", "one way: what nodes send vanishes; the connections are cut at the end.", seconds(2, 5),
			func(p *proxy.Proxy, _ *rand.Rand) { p.Swallow(proxy.Client) }),
		broken("replies lost", "one way: the server acts and its replies vanish; the connections are cut at the end.", seconds(2, 5),
			func(p *proxy.Proxy, _ *rand.Rand) { p.Swallow(proxy.Server) }),
		broken("late", "everything is held and delivered when the fault ends, in order.", seconds(2, 5),
			func(p *proxy.Proxy, _ *rand.Rand) { p.Hold(proxy.Client, proxy.Server) }),
		broken("slow", "30 ms and up to 120 ms more, each way, at random.", seconds(2, 5),
			func(p *proxy.Proxy, chance *rand.Rand) {
				p.Seed(chance.Uint64())
				p.Delay(30 * time.Millisecond)
				p.Jitter(120 * time.Millisecond)
			}),
		broken("cut at random", "each packet resets its connection with a probability of 15 %.", seconds(2, 5),
			func(p *proxy.Proxy, chance *rand.Rand) {
				p.Seed(chance.Uint64())
				p.CutAtRandom(0.15)
			}),
		broken("cut before the reply", "each third request is carried out and its connection reset before the reply.", seconds(2, 5),
			func(p *proxy.Proxy, chance *rand.Rand) { p.SetHook(cutSomeReplies(chance.Uint64())) }),
		broken("refused", "connections are reset and new ones refused.", seconds(2, 5),
			func(p *proxy.Proxy, _ *rand.Rand) {
				p.Refuse()
				p.Cut()
			}),
	}
}

// cutSomeReplies is a hook that lets each third packet of a client pass and cuts the
// connection at the reply to it.
func cutSomeReplies(seed uint64) proxy.Hook {
	chance := newChance(seed)
	return func(from proxy.Side, _ []byte) proxy.Action {
		if from == proxy.Client && chance.below(3) == 0 {
			return proxy.CutReply
		}
		return proxy.Pass
	}
}
