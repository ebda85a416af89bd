package manage

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Bounds of a Status.
const (
	MaxStatusTags   = 1000
	MaxStatusAlarms = 100
)

// Status is what an administrator looks at first.
type Status struct {
	Node    string    `json:"node"` // ID of the data directory
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Now     time.Time `json:"now"` // the node's clock
	DataDir string    `json:"data_dir"`
	Addresses

	Stage     string   `json:"stage"`             // "serving", or how far a stop is, in words
	Ready     bool     `json:"ready"`             // one of the modes issues IDs
	Reasons   []string `json:"reasons,omitempty"` // why no mode does, where that is not about a mode
	Segment   Mode     `json:"segment"`
	Snowflake Mode     `json:"snowflake"`

	Alarms     []Alarm `json:"alarms"`      // by code and subject, at most MaxStatusAlarms
	MoreAlarms int     `json:"more_alarms"` // that are not among them

	Tags     []TagStock `json:"tags"`      // the shortest stocks first
	TagsUsed int        `json:"tags_used"` // since the node started; Tags may have fewer

	Layout string `json:"layout"` // of IDs of snowflake mode, as configured

	Claim *Claim `json:"claim,omitempty"` // nil without snowflake mode
}

// Of reports whether a mode serves, for "" whether any does. Error: leaf.ErrBadRequest for
// another name.
func (s Status) Of(mode string) (ready bool, err error) {
	r := leaf.Readiness{Segment: leaf.ModeReadiness{Ready: s.Segment.Ready}, Snowflake: leaf.ModeReadiness{Ready: s.Snowflake.Ready}}
	ready, _, err = r.Of(mode)
	return ready, err
}

// Mode is the readiness of one mode.
type Mode struct {
	Enabled bool     `json:"enabled"`
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons,omitempty"` // why not, or what needs attention
}

// Alarm is a leaf.Alarm that lasts.
type Alarm struct {
	Code    string `json:"code"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
	Do      string `json:"do,omitempty"` // "": it heals by itself
}

// TagStock is how long a tag can be served from memory.
type TagStock struct {
	Tag     string   `json:"tag"`
	Store   string   `json:"store"`
	Stock   int64    `json:"stock"`             // IDs in memory
	Rate    float64  `json:"rate"`              // IDs per second over the last one to two sync intervals
	Seconds *float64 `json:"seconds,omitempty"` // how long the stock lasts at this rate; nil: no ID is taken
	Length  int64    `json:"length"`            // IDs in the last range: the step in force
	Loading bool     `json:"loading"`
	Latched bool     `json:"latched"`
	Problem string   `json:"problem,omitempty"` // class of the last failure
}

// Claim is the worker ID of a node, with the clocks of its peers.
type Claim struct {
	Registry  string     `json:"registry"`
	Kind      string     `json:"kind"`
	State     string     `json:"state"`
	Worker    int64      `json:"worker"` // -1: none
	Address   string     `json:"address,omitempty"`
	Confirmed bool       `json:"confirmed"`      // the registry knows the claim
	Bound     time.Time  `json:"bound,omitzero"` // T: every ID of the claim lies below
	Inner     time.Time  `json:"inner,omitzero"` // t, in the node's own file; a leased number has none of its own
	LayoutEnd time.Time  `json:"layout_end"`
	Compared  time.Time  `json:"compared,omitzero"` // when the peers were asked
	Peers     []PeerTime `json:"peers,omitempty"`
}

// PeerTime is what a peer said of its clock.
type PeerTime struct {
	Address string  `json:"address"`
	Ahead   float64 `json:"ahead"` // seconds by which its clock is ahead of this node's
	Error   string  `json:"error,omitempty"`
}

// GetStatus describes the running node with at most Tags of its tags, 0 to MaxStatusTags.
// Error: leaf.ErrBadRequest.
type GetStatus struct {
	Tags int `query:"tags" must:"must be 0 to 1000"`
}

func (q GetStatus) validate() error {
	if q.Tags < 0 || q.Tags > MaxStatusTags {
		return leaf.BadField("tags", q.Tags, fmt.Sprintf("must be 0 to %d", MaxStatusTags))
	}
	return nil
}

func (q GetStatus) run(_ context.Context, s NodeSite) (Status, error) {
	if err := q.validate(); err != nil {
		return Status{}, err
	}
	return s.Status(q.Tags), nil
}
