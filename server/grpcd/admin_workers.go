package grpcd

import (
	"context"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/server/admin"
)

// ListWorkers returns what the registry knows.
func (s *adminService) ListWorkers(ctx context.Context, _ *leafpb.ListWorkersRequest) (*leafpb.ListWorkersResponse, error) {
	all, err := s.b.Workers(ctx)
	if err != nil {
		return nil, err
	}
	resp := &leafpb.ListWorkersResponse{
		Registry:  all.Registry,
		Kind:      all.Kind,
		Namespace: all.Namespace,
		Layout:    all.Layout,
		NowMs:     all.Now,
		Last:      all.Last,
	}
	for _, w := range all.Workers {
		resp.Workers = append(resp.Workers, &leafpb.Worker{
			Number:   w.Number,
			Address:  w.Address,
			State:    workerStates[w.State],
			Own:      w.Own,
			FloorMs:  w.Floor,
			BoundMs:  w.Bound,
			Released: w.Released,
		})
	}
	return resp, nil
}

// workerStates are the states of package admin.
var workerStates = map[string]leafpb.WorkerState{
	admin.WorkerRunning:  leafpb.WorkerState_WORKER_STATE_RUNNING,
	admin.WorkerHeld:     leafpb.WorkerState_WORKER_STATE_HELD,
	admin.WorkerExpired:  leafpb.WorkerState_WORKER_STATE_EXPIRED,
	admin.WorkerReleased: leafpb.WorkerState_WORKER_STATE_RELEASED,
}

// ReleaseWorker takes a worker ID from its owner.
func (s *adminService) ReleaseWorker(ctx context.Context, req *leafpb.ReleaseWorkerRequest) (*leafpb.ReleaseWorkerResponse, error) {
	if req.Number == nil || req.GetNumber() < 0 {
		return nil, leaf.BadField("number", req.GetNumber(), "must be present and a worker ID")
	}
	return &leafpb.ReleaseWorkerResponse{}, s.b.ReleaseWorker(ctx, req.GetNumber())
}

// InitWorkers declares the registry new.
func (s *adminService) InitWorkers(ctx context.Context, _ *leafpb.InitWorkersRequest) (*leafpb.InitWorkersResponse, error) {
	return &leafpb.InitWorkersResponse{}, s.b.InitWorkers(ctx)
}
