package console

import (
	"context"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
)

// Source is what a console shows. All methods are safe for concurrent use; those without a
// context look at memory only. Errors are those of package leaf.
type Source interface {
	Overview() Overview
	Snowflake() Snowflake

	// Rows returns the rows of at most limit tags whose names come after a name, and the
	// after of the next page, "" at the end.
	Rows(ctx context.Context, after string, limit int) (rows any, next string, err error)

	Workers(ctx context.Context) (any, error)
	Cluster(ctx context.Context) (any, error)

	Encode(p Parts) (any, error)
	idtime.Layout
}

// Meter is what a Monitor measures.
type Meter interface {
	Counters() Counters
	Tags() []Usage // that are in use, in any order
}

// Counters count since the node's start.
type Counters struct {
	Issued, Loads, Failures, Waits, Refused int64

	Waiting int      // requests that wait now
	Offset  *float64 // seconds that this clock is ahead of its peers; nil: not known
}

// Usage is what is in memory for a tag.
type Usage struct {
	Tag           string
	Store         string
	Step, Length  int64 // the row's own, and that of the last range
	Current, Next leaf.Range
	Position      int64 // the next ID of Current
	Stock, Issued int64
	Loading       bool
	LastLoad      time.Time
	LastUse       time.Time
	Failures      int
	Problem       string // class of the last failure
	Error         string // the last failure
	Fence         int64
	Cluster       int64
	Latched       bool
}

// Overview is the state of the node as a whole.
type Overview struct {
	Version  string    `json:"version"`
	NodeID   string    `json:"node_id,omitempty"`
	Zone     string    `json:"zone,omitempty"`
	Cluster  string    `json:"cluster,omitempty"`
	Now      time.Time `json:"now"`
	Started  time.Time `json:"started"`
	Stage    string    `json:"stage,omitempty"`
	DataDir  string    `json:"data_dir,omitempty"`
	PID      int       `json:"pid,omitempty"`
	Servers  []Server  `json:"servers"`
	Modes    []Mode    `json:"modes"`
	Reasons  []string  `json:"reasons,omitempty"` // about the node, beside its alarms
	Alarms   []Alarm   `json:"alarms"`
	More     int       `json:"more_alarms,omitempty"` // that are not listed
	Backends []Backend `json:"backends"`

	Tags     int   `json:"tags"` // known
	Loads    int64 `json:"loads,string"`
	Failures int64 `json:"load_failures,string"`
	Waits    int64 `json:"waits,string"`
	Lost     int64 `json:"lost,string"`
	Refused  int64 `json:"refused,string"`

	Last *Point `json:"last,omitempty"` // the last sample
}

// Server is an address of the node.
type Server struct {
	Protocol string `json:"protocol"`
	Address  string `json:"address"`
}

// Mode is the readiness of one mode.
type Mode struct {
	Name    string   `json:"name"`
	Enabled bool     `json:"enabled"`
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons,omitempty"`
}

// Alarm is an alarm that lasts.
type Alarm struct {
	Code    string `json:"code"`
	Subject string `json:"subject"`
	Text    string `json:"text,omitempty"`
	Do      string `json:"do,omitempty"`
}

// Backend is a database, registry, directory or cluster fence that the node uses.
type Backend struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	Healthy bool   `json:"healthy"`
	Reason  string `json:"reason,omitempty"`
}

// Snowflake is the state of snowflake mode. Moments are Unix milliseconds.
type Snowflake struct {
	Enabled    bool      `json:"enabled"`
	State      string    `json:"state,omitempty"`
	Ready      bool      `json:"ready"`
	Reason     string    `json:"reason,omitempty"`
	Registry   string    `json:"registry,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	Worker     int64     `json:"worker"` // -1: none
	Datacenter *int64    `json:"datacenter,omitempty"`
	Address    string    `json:"address,omitempty"`
	Confirmed  bool      `json:"confirmed"`
	Now        int64     `json:"now,string"`
	Floor      int64     `json:"floor,string"`
	Position   int64     `json:"position,string"`
	Inner      int64     `json:"inner,string"`
	Bound      int64     `json:"bound,string"`
	Sequence   int64     `json:"sequence"` // gone in the last unit
	Capacity   int64     `json:"capacity"`
	Unit       string    `json:"unit,omitempty"`
	Layout     string    `json:"layout,omitempty"`
	Begin      time.Time `json:"begin,omitzero"`
	End        time.Time `json:"end,omitzero"` // of the layout
	Asked      time.Time `json:"asked,omitzero"`
	Peers      []Peer    `json:"peers"`
	Median     *float64  `json:"median,omitempty"` // seconds that the peers are ahead

	Claims, Losses, Refusals, RenewFailures, ClockErrors int64
}

// Peer is another node's clock.
type Peer struct {
	Address string   `json:"address"`
	Worker  int64    `json:"worker"`
	Ahead   *float64 `json:"ahead,omitempty"` // seconds; nil: no answer
	Error   string   `json:"error,omitempty"`
}

// Parts are the fields of an ID, for Encode.
type Parts struct {
	Time       time.Time
	Datacenter int64
	Worker     int64
	Sequence   int64
}
