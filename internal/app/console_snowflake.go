package app

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
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

// Decode implements console.Source.
func (v view) Decode(text string) (any, error) {
	id, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return nil, leaf.BadField("id", text, "must be a decimal number of 64 bits")
	}
	return Decode(v.app.cfg.Snowflake.Layout, id, time.Now())
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
		return nil, fmt.Errorf("%w: %s", leaf.ErrBadRequest, strings.TrimPrefix(err.Error(), snowflake.ErrInvalid.Error()+": "))
	}
	return encoded{id, v.app.cfg.Snowflake.Layout}, nil
}

// span is the answer to a time. 64-bit numbers are strings in JSON.
type span struct {
	Lo     int64  `json:"lo,string"`
	Hi     int64  `json:"hi,string"` // the first ID behind
	Layout string `json:"layout"`
}

// Span implements console.Source.
func (v view) Span(from, to time.Time) (any, error) {
	r := v.layout.IDs(from, to)
	if r.Len() == 0 {
		return nil, leaf.BadField("to", to.Format(time.RFC3339), "must lie after from, and within the layout")
	}
	return span{r.Lo, r.Hi, v.app.cfg.Snowflake.Layout}, nil
}
