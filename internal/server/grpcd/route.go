package grpcd

import (
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/leafpb"
)

// forwardedKey is the metadata in which a node that forwards a request shows the secret of the
// cluster's nodes.
const forwardedKey = "leaf-forwarded"

// admitNode returns what a call may take its IDs from that another node has forwarded.
func (s *service) admitNode(secrets []string) (*leaf.Issuers, error) {
	secret, err := auth.Single(forwardedKey, secrets)
	if err != nil {
		return nil, err
	}
	if s.forwarded == nil {
		return nil, fmt.Errorf("%w: this node takes no requests from other nodes: it takes no part in strict order, as the node that has forwarded this one does; look whether both are of one cluster and have the same version and configuration", leaf.ErrUnauthenticated)
	}
	issuers := s.forwarded(secret)
	if issuers == nil {
		return nil, fmt.Errorf("%w: the metadata %s does not hold the secret of this cluster's nodes; look whether the node that has forwarded this request is of this cluster and uses the same store", leaf.ErrUnauthenticated, forwardedKey)
	}
	return issuers, nil
}

// routeOf returns where the tag of a request is issued that has just been served; nil: it is not in
// strict order. To ask before would show an owner that the IDs are not of.
func (s *service) routeOf(req request) *leafpb.Route {
	if s.route == nil || req.GetMode() == leafpb.Mode_MODE_SNOWFLAKE {
		return nil
	}
	owner, epoch, strict := s.route(req.GetTag())
	if !strict {
		return nil
	}
	return &leafpb.Route{Owner: owner, Epoch: epoch}
}
