package app

import (
	"time"

	"github.com/leaf-idgen/leaf/internal/server/console"
	"github.com/leaf-idgen/leaf/snowflake"
)

// Snowflake implements console.Source.
func (v view) Snowflake() console.Snowflake {
	a, l := v.app, v.layout
	s := console.Snowflake{
		Worker: -1, Peers: []console.Peer{}, Now: time.Now().UnixMilli(), Unit: l.Unit.String(), Layout: a.cfg.Snowflake.Layout,
		Begin: time.UnixMilli(l.Epoch).UTC(), End: l.End(),
	}
	if a.worker == nil {
		if a.leftOut != nil && !v.strangers {
			s.Reason = a.leftOut.Error()
		}
		return s
	}
	st := a.worker.Status()
	s.Enabled, s.State, s.Ready, s.Registry, s.Kind = true, string(st.State), st.Ready, st.Info.Name, st.Info.Kind.String()
	s.Worker, s.Confirmed, s.Floor, s.Position, s.Inner, s.Bound = st.Number, st.Confirmed, st.Floor, st.Position, st.Inner, st.Bound
	s.Sequence, s.Capacity, s.Asked = st.Sequence, st.Capacity, st.Asked
	s.Claims, s.Losses, s.Refusals, s.RenewFailures, s.ClockErrors = st.Claims, st.Losses, st.Refusals, st.RenewFailures, st.ClockErrors
	if l.DatacenterBits > 0 {
		datacenter := max(0, a.cfg.Snowflake.Datacenter)
		s.Datacenter = &datacenter
	}
	if st.Clock.Answered > 0 {
		ahead := st.Clock.Median.Seconds()
		s.Median = &ahead
	}
	if v.strangers {
		return s
	}
	s.Reason, s.Address = st.Reason, st.Address
	for _, e := range st.Clock.Each {
		p := console.Peer{Address: e.Peer.Address, Worker: e.Peer.Number}
		if e.Err != nil {
			p.Error = e.Err.Error()
		} else {
			ahead := e.Ahead.Seconds()
			p.Ahead = &ahead
		}
		s.Peers = append(s.Peers, p)
	}
	return s
}

// encoded is the answer to an encoding. 64-bit numbers are strings in JSON.
type encoded struct {
	ID     int64  `json:"id,string"`
	Layout string `json:"layout"`
}

// Encode implements console.Source.
func (v view) Encode(p console.Parts) (any, error) {
	unit, err := v.layout.Floor(p.Time.UnixMilli())
	var id int64
	if err == nil {
		id, err = v.layout.Encode(snowflake.Parts{Unit: unit, Datacenter: p.Datacenter, Worker: p.Worker, Sequence: p.Sequence})
	}
	if err != nil {
		return nil, badRequest(err)
	}
	return encoded{id, v.app.cfg.Snowflake.Layout}, nil
}
