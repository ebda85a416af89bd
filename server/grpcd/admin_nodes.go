package grpcd

import (
	"context"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/server/admin"
)

// ListNodes returns the nodes of the directory.
func (s *adminService) ListNodes(ctx context.Context, _ *leafpb.ListNodesRequest) (*leafpb.ListNodesResponse, error) {
	all, err := s.b.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	resp := &leafpb.ListNodesResponse{Directory: all.Directory}
	for _, n := range all.Nodes {
		resp.Nodes = append(resp.Nodes, nodeOf(n))
	}
	return resp, nil
}

// SetWeight changes the node's share of the clients' traffic.
func (s *adminService) SetWeight(ctx context.Context, req *leafpb.SetWeightRequest) (*leafpb.SetWeightResponse, error) {
	if req.Weight == nil {
		return nil, leaf.BadField("weight", "", "must be present, 0 to 1000")
	}
	n, err := s.b.SetWeight(ctx, int(req.GetWeight()))
	if err != nil {
		return nil, err
	}
	return &leafpb.SetWeightResponse{Node: nodeOf(n)}, nil
}

func nodeOf(n admin.Node) *leafpb.Node {
	return &leafpb.Node{
		Id:     n.ID,
		Zone:   n.Zone,
		Weight: int32(n.Weight), // 0 to 1000
		Http:   n.HTTP,
		Grpc:   n.GRPC,
		Resp:   n.RESP,
		Own:    n.Own,
	}
}
