package grpcd

import (
	"context"

	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/server/admin"
)

// ListTags returns all tags.
func (s *adminService) ListTags(ctx context.Context, _ *leafpb.ListTagsRequest) (*leafpb.ListTagsResponse, error) {
	tags, err := s.b.Tags(ctx)
	if err != nil {
		return nil, err
	}
	resp := &leafpb.ListTagsResponse{}
	for _, tag := range tags {
		resp.Tags = append(resp.Tags, tagOf(tag))
	}
	return resp, nil
}

// GetTag returns one tag.
func (s *adminService) GetTag(ctx context.Context, req *leafpb.GetTagRequest) (*leafpb.GetTagResponse, error) {
	tag, err := s.b.Tag(ctx, req.GetTag())
	if err != nil {
		return nil, err
	}
	return &leafpb.GetTagResponse{Tag: tagOf(tag)}, nil
}

// CreateTag inserts a tag.
func (s *adminService) CreateTag(ctx context.Context, req *leafpb.CreateTagRequest) (*leafpb.CreateTagResponse, error) {
	tag, err := s.b.CreateTag(ctx, admin.NewTag{
		Name:        req.GetTag(),
		Start:       req.GetStart(),
		Step:        req.GetStep(),
		Description: req.GetDescription(),
		MinStep:     req.GetMinStep(),
		MaxStep:     req.GetMaxStep(),
		FixedStep:   req.GetFixedStep(),
	})
	if err != nil {
		return nil, err
	}
	return &leafpb.CreateTagResponse{Tag: tagOf(tag)}, nil
}

// UpdateTag changes the fields that are present.
func (s *adminService) UpdateTag(ctx context.Context, req *leafpb.UpdateTagRequest) (*leafpb.UpdateTagResponse, error) {
	tag, err := s.b.SetTag(ctx, req.GetTag(), admin.TagChange{
		MaxID:       req.MaxId,
		Step:        req.Step,
		Description: req.Description,
		MinStep:     req.MinStep,
		MaxStep:     req.MaxStep,
		FixedStep:   req.FixedStep,
	})
	if err != nil {
		return nil, err
	}
	return &leafpb.UpdateTagResponse{Tag: tagOf(tag)}, nil
}

// DeleteTag removes a tag.
func (s *adminService) DeleteTag(ctx context.Context, req *leafpb.DeleteTagRequest) (*leafpb.DeleteTagResponse, error) {
	return &leafpb.DeleteTagResponse{}, s.b.DeleteTag(ctx, req.GetTag())
}

// RepairTag releases a latched tag.
func (s *adminService) RepairTag(ctx context.Context, req *leafpb.RepairTagRequest) (*leafpb.RepairTagResponse, error) {
	repair, err := s.b.RepairTag(ctx, req.GetTag(), req.GetAbove())
	if err != nil {
		return nil, err
	}
	return &leafpb.RepairTagResponse{Tag: tagOf(repair.Tag), Plan: planOf(repair.Plan)}, nil
}

// PlanRepair says what RepairTag would do.
func (s *adminService) PlanRepair(ctx context.Context, req *leafpb.PlanRepairRequest) (*leafpb.PlanRepairResponse, error) {
	plan, err := s.b.PlanRepair(ctx, req.GetTag(), req.GetAbove())
	if err != nil {
		return nil, err
	}
	return &leafpb.PlanRepairResponse{Plan: planOf(plan)}, nil
}

func planOf(p admin.RepairPlan) *leafpb.RepairPlan {
	plan := &leafpb.RepairPlan{
		Row: p.Row, Posted: p.Posted, ClusterFence: p.ClusterFence, Above: p.Above, First: p.First, Refused: p.Refused,
	}
	for _, n := range p.Nodes {
		plan.Nodes = append(plan.Nodes, &leafpb.RepairNode{Node: n.Node, End: n.End, State: n.State})
	}
	return plan
}

func tagOf(t admin.Tag) *leafpb.Tag {
	return &leafpb.Tag{
		Tag:         t.Name,
		MaxId:       t.MaxID,
		Step:        t.Step,
		Description: t.Description,
		UpdateTime:  moment(t.UpdateTime),
		MinStep:     t.MinStep,
		MaxStep:     t.MaxStep,
		FixedStep:   t.FixedStep,
		Store:       t.Store,
		Fence:       t.Fence,
		Latched:     t.State == admin.TagLatched,
	}
}
