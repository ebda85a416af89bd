package grpcd

import (
	"context"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/server/admin"
)

// ListLimits returns all limits.
func (s *adminService) ListLimits(ctx context.Context, _ *leafpb.ListLimitsRequest) (*leafpb.ListLimitsResponse, error) {
	all, err := s.b.Limits(ctx)
	if err != nil {
		return nil, err
	}
	resp := &leafpb.ListLimitsResponse{Node: trafficOf(all.Node)}
	for _, l := range all.Limits {
		resp.Limits = append(resp.Limits, limitOf(l))
	}
	return resp, nil
}

// SetTagLimit changes the fields that are present.
func (s *adminService) SetTagLimit(ctx context.Context, req *leafpb.SetTagLimitRequest) (*leafpb.SetTagLimitResponse, error) {
	l, err := s.b.SetTagLimit(ctx, req.GetTag(), admin.LimitChange{
		Rate:    req.Rate,
		Quota:   req.Quota,
		Blocked: req.Blocked,
	})
	if err != nil {
		return nil, err
	}
	return &leafpb.SetTagLimitResponse{Limit: limitOf(l)}, nil
}

// SetClientLimit changes the fields that are present.
func (s *adminService) SetClientLimit(ctx context.Context, req *leafpb.SetClientLimitRequest) (*leafpb.SetClientLimitResponse, error) {
	if req.Client == nil {
		return nil, leaf.BadField("client", "", "must be present; the empty name stands for all clients without one")
	}
	l, err := s.b.SetClientLimit(ctx, req.GetClient(), admin.LimitChange{
		Rate:    req.Rate,
		Quota:   req.Quota,
		Blocked: req.Blocked,
	})
	if err != nil {
		return nil, err
	}
	return &leafpb.SetClientLimitResponse{Limit: limitOf(l)}, nil
}

func limitOf(l admin.Limit) *leafpb.Limit {
	return &leafpb.Limit{
		Kind:    limitKinds[l.Kind],
		Name:    l.Name,
		Rate:    l.Rate,
		Quota:   l.Quota,
		Blocked: l.Blocked,
		Store:   l.Store,
		Used:    l.Used,
		Refused: l.Refused,
	}
}

// limitKinds are the kinds of package admin.
var limitKinds = map[string]leafpb.LimitKind{
	admin.LimitOfTag:    leafpb.LimitKind_LIMIT_KIND_TAG,
	admin.LimitOfClient: leafpb.LimitKind_LIMIT_KIND_CLIENT,
}

func trafficOf(t *admin.NodeTraffic) *leafpb.NodeTraffic {
	if t == nil {
		return nil
	}
	return &leafpb.NodeTraffic{
		Unauthenticated: t.Unauthenticated,
		Blocked:         t.Blocked,
		Rate:            t.Rate,
		Quota:           t.Quota,
		Segment:         roomOf(t.Segment),
		Snowflake:       roomOf(t.Snowflake),
	}
}

func roomOf(r admin.WaitingRoom) *leafpb.WaitingRoom {
	return &leafpb.WaitingRoom{Waiting: int64(r.Waiting), Limit: int64(r.Limit), Shed: r.Shed}
}
