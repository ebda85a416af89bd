package grpcd

import (
	"context"
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/requestid"
	"github.com/leaf-idgen/leaf/internal/server/accept"
	"github.com/leaf-idgen/leaf/leafpb"
)

// Sequence gives entities numbers of their own.
func (s *service) Sequence(ctx context.Context, req *leafpb.SequenceRequest) (*leafpb.SequenceResponse, error) {
	log := requestid.Log(s.log, requestid.ID(ctx))
	results, err := s.nextEach(ctx, req)
	if err != nil {
		return nil, statusOf(log, err)
	}
	reply := &leafpb.SequenceResponse{Results: make([]*leafpb.EntityResponse, len(results))}
	for i, r := range results {
		if err := accept.Ended(r.Err); err != nil {
			reply.Results[i] = &leafpb.EntityResponse{Error: messageOf(log, err)}
		} else {
			reply.Results[i] = &leafpb.EntityResponse{Range: &leafpb.Range{Lo: r.Range.Lo, Hi: r.Range.Hi}}
		}
	}
	reply.Route = s.routeOfEntity(req, results)
	return reply, nil
}

// routeOfEntity returns where the numbers of the first entity are issued, which has just got its answer; else nil.
func (s *service) routeOfEntity(req *leafpb.SequenceRequest, results []leaf.SequenceResult) *leafpb.Route {
	if s.routeEach == nil || results[0].Err != nil {
		return nil
	}
	owner, epoch, known := s.routeEach(req.GetSequence(), req.GetRequests()[0].GetEntity())
	if !known {
		return nil
	}
	return &leafpb.Route{Owner: owner, Epoch: epoch}
}

func (s *service) nextEach(ctx context.Context, req *leafpb.SequenceRequest) ([]leaf.SequenceResult, error) {
	issuers, err := s.admit(ctx)
	if err != nil {
		return nil, err
	}
	requests := make([]leaf.SequenceRequest, len(req.GetRequests()))
	for i, r := range req.GetRequests() {
		count := int(r.GetCount())
		switch {
		case r.GetPeek() && count != 0:
			return nil, fmt.Errorf("requests[%d]: %w", i, leaf.BadField("count", count, "must be 0 with peek"))
		case count == 0 && !r.GetPeek():
			count = 1
		}
		requests[i] = leaf.SequenceRequest{Entity: r.GetEntity(), Count: count, From: r.GetFrom()}
	}
	if err := leaf.ValidateSequence(req.GetSequence(), requests); err != nil {
		return nil, err
	}
	results, err := issuers.Sequencer().NextEach(ctx, req.GetSequence(), requests)
	return results, accept.Ended(err)
}
