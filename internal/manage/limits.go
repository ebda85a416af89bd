package manage

import "context"

// LimitBackend is what commands can do with the limits of tags and clients.
type LimitBackend interface {
	// Limits returns all limits: those of tags, by name, before those of clients.
	Limits(ctx context.Context) (Limits, error)

	// SetTagLimit changes the fields that are not nil and returns the limit. With none
	// left it is removed. A running node counts it at once, other nodes a few seconds
	// later. Errors: leaf.ErrUnknownTag, leaf.ErrBadRequest.
	SetTagLimit(ctx context.Context, tag string, change LimitChange) (Limit, error)

	// SetClientLimit is SetTagLimit for a client, which need not be known; "" stands for
	// all clients without a name.
	SetClientLimit(ctx context.Context, client string, change LimitChange) (Limit, error)
}

// Limits are all limits, and what a running node has made of them.
type Limits struct {
	Limits []Limit      `json:"limits"`
	Node   *NodeTraffic `json:"node,omitempty"` // nil without a running node
}

// Kinds of a Limit.
const (
	LimitOfTag    = "tag"
	LimitOfClient = "client"
)

// Limit is what a tag or a client may have, of each node. 64-bit numbers are strings in
// JSON.
type Limit struct {
	Kind    string `json:"kind"` // see the constants
	Name    string `json:"name"`
	Rate    int64  `json:"rate,string,omitempty"`    // IDs per second; 0: no limit
	Quota   int64  `json:"quota,string,omitempty"`   // IDs per day (UTC); 0: no limit
	Blocked bool   `json:"blocked,omitempty"`        // nothing is issued
	Store   string `json:"store,omitempty"`          // name of its database, if there are several
	Used    int64  `json:"used,string,omitempty"`    // IDs that this node issued today under the quota
	Refused int64  `json:"refused,string,omitempty"` // requests that this node refused since the limit is in force
}

// LimitChange is an edit; nil fields stay as they are.
type LimitChange struct {
	Rate    *int64 `json:"rate,string,omitempty"`
	Quota   *int64 `json:"quota,string,omitempty"`
	Blocked *bool  `json:"blocked,omitempty"`
}

// NodeTraffic is what a node did since its start, in requests.
type NodeTraffic struct {
	Unauthenticated int64       `json:"unauthenticated,string"` // refused: the token was not right
	Blocked         int64       `json:"blocked,string"`         // refused: switched off
	Rate            int64       `json:"rate,string"`            // refused: above a rate
	Quota           int64       `json:"quota,string"`           // refused: above a quota
	Segment         WaitingRoom `json:"segment"`
	Snowflake       WaitingRoom `json:"snowflake"`
}

// WaitingRoom is where the requests of a mode wait that find no IDs in stock.
type WaitingRoom struct {
	Waiting int   `json:"waiting"`
	Limit   int   `json:"limit"`       // how many may wait now
	Shed    int64 `json:"shed,string"` // refused: too many waited
}
