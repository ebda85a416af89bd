package grpcd

import (
	"context"
	"time"

	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/requestid"
	"github.com/leaf-idgen/leaf/leafpb"
)

// Decode takes an ID of snowflake mode apart.
func (s *service) Decode(ctx context.Context, req *leafpb.DecodeRequest) (*leafpb.DecodeResponse, error) {
	return answer(ctx, s, func() (*leafpb.DecodeResponse, error) {
		layout, err := s.layout(req.GetLayout())
		if err != nil {
			return nil, err
		}
		d, err := layout.Decode(req.GetId())
		if err != nil {
			return nil, err
		}
		return &leafpb.DecodeResponse{UnixMs: d.UnixMilli, Worker: d.Worker, Sequence: d.Sequence, Datacenter: d.Datacenter, Layout: d.Layout}, nil
	})
}

// TimeRange returns the IDs of a time.
func (s *service) TimeRange(ctx context.Context, req *leafpb.TimeRangeRequest) (*leafpb.TimeRangeResponse, error) {
	return answer(ctx, s, func() (*leafpb.TimeRangeResponse, error) {
		layout, err := s.layout(req.GetLayout())
		if err != nil {
			return nil, err
		}
		var to time.Time
		if ms := req.GetToUnixMs(); ms != 0 {
			to = time.UnixMilli(ms).UTC()
		}
		ids, err := layout.Range(time.UnixMilli(req.GetFromUnixMs()).UTC(), to)
		if err != nil {
			return nil, err
		}
		return &leafpb.TimeRangeResponse{Range: &leafpb.Range{Lo: ids.Lo, Hi: ids.Hi}, Layout: ids.Layout}, nil
	})
}

// layout returns the layout of a request.
func (s *service) layout(text string) (idtime.Layout, error) {
	if text == "" {
		return s.times, nil
	}
	return s.times.Of(text)
}

// answer answers a call that takes no IDs with what f returns, once the client is let in.
func answer[T any](ctx context.Context, s *service, f func() (T, error)) (reply T, err error) {
	if _, err = s.admit(ctx); err == nil {
		reply, err = f()
	}
	if err != nil {
		return reply, statusOf(requestid.Log(s.log, requestid.ID(ctx)), err)
	}
	return reply, nil
}
