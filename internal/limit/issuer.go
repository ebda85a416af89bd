package limit

import (
	"context"
	"time"

	"github.com/leaf-idgen/leaf"
)

// client is what Open returns: both modes, for one name.
type client struct {
	gate    *Gate
	name    string
	issuers leaf.Issuers
	modes   [modes]issuer

	sequences sequencer
}

func (g *Gate) client(name string) *client {
	c := &client{gate: g, name: name}
	for i := range c.modes {
		c.modes[i] = issuer{c, i}
	}
	c.sequences = sequencer{c}
	c.issuers = leaf.Issuers{Segment: &c.modes[segment], Snowflake: &c.modes[snowflake], Sequence: &c.sequences}
	return c
}

// issuer is one mode of a client.
type issuer struct {
	client *client
	mode   int
}

// Next implements leaf.Issuer.
func (i *issuer) Next(ctx context.Context, tag string) (id int64, err error) {
	g := i.client.gate
	var s spending
	if t := g.table.Load(); len(t.tags)+len(t.clients) > 0 {
		if err := i.spend(t, &s, tag, 1); err != nil {
			return 0, err
		}
	}
	k := g.waiting[i.mode].slot(ctx, i.queue(tag))
	defer func() { err = s.settle(k.release(err)) }()
	return g.inner[i.mode].Next(k, tag)
}

// NextN implements leaf.Issuer.
func (i *issuer) NextN(ctx context.Context, tag string, n int) (ranges []leaf.Range, err error) {
	g := i.client.gate
	if n < 1 || n > leaf.MaxBatch {
		return g.inner[i.mode].NextN(ctx, tag, n) // which says what is wrong
	}
	var s spending
	if t := g.table.Load(); len(t.tags)+len(t.clients) > 0 {
		if err := i.spend(t, &s, tag, int64(n)); err != nil {
			return nil, err
		}
	}
	if n > 1 {
		if err := g.waiting[i.mode].turns(i.queue(tag)); err != nil {
			return nil, s.settle(err)
		}
	}
	k := g.waiting[i.mode].slot(ctx, i.queue(tag))
	defer func() { err = s.settle(k.release(err)) }()
	return g.inner[i.mode].NextN(k, tag, n)
}

// queue returns what the requests for tag wait for, by name.
func (i *issuer) queue(tag string) string {
	if i.mode == snowflake {
		return ""
	}
	return tag
}

// spending is what a request took from limits, to be refunded if it gets no IDs.
type spending struct {
	by  [2]*limiter
	n   int64
	now time.Time
}

// spend takes n IDs from the limits of the client and the tag, or from none.
func (i *issuer) spend(t *table, s *spending, tag string, n int64) error {
	g := i.client.gate
	found := [2]*limiter{}
	if len(t.clients) > 0 {
		found[0] = t.clients[i.client.name]
	}
	if i.mode == segment && len(t.tags) > 0 {
		found[1] = t.tags[tag]
	}
	if found == [2]*limiter{} {
		return nil
	}
	for _, l := range found {
		if l != nil {
			if err := l.blocked(&g.refused); err != nil {
				return err
			}
		}
	}
	s.n, s.now = n, g.rt.Now()
	for at, l := range found {
		if l == nil {
			continue
		}
		if err := l.take(n, s.now, &g.refused); err != nil {
			return s.settle(err)
		}
		s.by[at] = l
	}
	return nil
}

// settle refunds what was taken if the request failed. It returns err.
func (s *spending) settle(err error) error {
	if err != nil && s.n > 0 {
		for _, l := range s.by {
			if l != nil {
				l.refund(s.n, s.now)
			}
		}
	}
	return err
}
