package app

import (
	"math"
	"os"
	"time"

	"github.com/leaf-idgen/leaf/internal/manage"
)

// Status implements manage.NodeSite.
func (n *node) Status(tags int) manage.Status {
	a := n.app
	r := a.modes()
	stage, _ := a.drain.now()
	st := manage.Status{
		Node: a.dir.NodeID(), Version: a.opts.Version, PID: os.Getpid(), Started: a.created.Truncate(time.Second), Now: time.Now().UTC().Truncate(time.Millisecond), DataDir: a.dir.Path(),
		Addresses: a.listening(),
		Stage:     stage, Ready: r.Segment.Ready || r.Snowflake.Ready, Reasons: r.Reasons, Segment: manage.Mode(r.Segment), Snowflake: manage.Mode(r.Snowflake),
		Layout: a.cfg.Snowflake.Layout, Alarms: []manage.Alarm{}, Tags: []manage.TagStock{},
	}
	for i, alarm := range a.alarms.Active() {
		if i < manage.MaxStatusAlarms {
			st.Alarms = append(st.Alarms, manage.Alarm(alarm))
		} else {
			st.MoreAlarms++
		}
	}
	if a.alloc != nil {
		st.Tags, st.TagsUsed = a.stocks(tags)
	}
	if a.worker != nil {
		st.Claim = a.claim()
	}
	return st
}

func (a *App) stocks(limit int) (stocks []manage.TagStock, used int) {
	scarcest, used := a.alloc.Scarcest(limit)
	stocks = make([]manage.TagStock, 0, len(scarcest))
	for _, t := range scarcest {
		stock := manage.TagStock{
			Tag: t.Tag, Store: t.Store, Stock: t.Stock, Rate: t.Rate, Length: t.Length,
			Loading: t.Loading, Latched: t.Latched, Problem: t.Problem,
		}
		if seconds := t.Lasts(); !math.IsInf(seconds, 0) {
			stock.Seconds = &seconds
		}
		stocks = append(stocks, stock)
	}
	return stocks, used
}

func (a *App) claim() *manage.Claim {
	st := a.worker.Status()
	c := &manage.Claim{
		Registry: st.Info.Name, Kind: st.Info.Kind.String(), State: string(st.State), Worker: st.Number, Address: st.Address, Confirmed: st.Confirmed,
		LayoutEnd: st.End.UTC(), Compared: st.Asked.Truncate(time.Millisecond),
	}
	if st.Number >= 0 {
		c.Bound, c.Inner = time.UnixMilli(st.Bound).UTC(), time.UnixMilli(st.Inner).UTC()
	}
	for _, o := range st.Clock.Each {
		p := manage.PeerTime{Address: o.Peer.Address, Ahead: o.Ahead.Seconds()}
		if o.Err != nil {
			p.Error = o.Err.Error()
		}
		c.Peers = append(c.Peers, p)
	}
	return c
}
