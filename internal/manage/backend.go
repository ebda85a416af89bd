package manage

import (
	"context"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Backend is what administrative commands can do. The running node implements it
// on its engine; [Client] implements it over the node's Unix socket; commands
// without a running node implement it on an opened store. The command line
// therefore does not know which of the three it talks to.
//
// Errors are those of package leaf and survive the socket: errors.Is works on
// both sides. All methods are safe for concurrent use.
type Backend interface {
	LimitBackend

	// Info describes the node or the store that answers.
	Info(ctx context.Context) (Info, error)

	// Tags returns all tags, sorted by name.
	Tags(ctx context.Context) ([]Tag, error)

	// Tag returns one tag. Error: leaf.ErrUnknownTag.
	Tag(ctx context.Context, name string) (Tag, error)

	// CreateTag inserts a row and returns it. Errors: leaf.ErrConflict if it
	// exists, or if Start lies below the highest end that this node knows for the
	// name; leaf.ErrBadRequest.
	CreateTag(ctx context.Context, tag NewTag) (Tag, error)

	// SetTag changes the fields that are not nil and returns the tag. Lowering
	// max_id is leaf.ErrConflict. Errors: leaf.ErrUnknownTag, leaf.ErrBadRequest.
	SetTag(ctx context.Context, name string, change TagChange) (Tag, error)

	// DeleteTag removes the row and its options. Error: leaf.ErrUnknownTag.
	DeleteTag(ctx context.Context, name string) error

	// RepairTag moves a tag above the highest number in use and releases it on every
	// node; it asks all nodes for that number. With above other than 0 the number is at
	// least above, and nodes that do not answer are left out. It may be repeated. Errors:
	// leaf.ErrNotReady if a node does not answer, named in the text; leaf.ErrConflict if
	// above lies below a number that is known; leaf.ErrUnknownTag, which releases a latched
	// tag without a row all the same; leaf.ErrBadRequest.
	RepairTag(ctx context.Context, name string, above int64) (Repair, error)

	// PlanRepair returns what RepairTag with the same arguments would do, or why it would
	// refuse, and changes nothing. Errors: those of RepairTag that keep it from asking.
	PlanRepair(ctx context.Context, name string, above int64) (RepairPlan, error)

	// Next issues exactly n IDs of a tag.
	Next(ctx context.Context, tag string, n int) ([]leaf.Range, error)
}

// WorkerBackend is what commands can do with the registry of worker IDs: through the
// running node, over its socket, or on the opened registry.
type WorkerBackend interface {
	// Workers returns what the registry knows.
	Workers(ctx context.Context) (Workers, error)

	// ReleaseWorker takes a worker ID from its owner: the owner, if it lives, stops
	// issuing and claims another one, and the next owner starts at the record's Bound.
	// leaf.ErrConflict if there is no record of the number.
	ReleaseWorker(ctx context.Context, number int64) error

	// InitWorkers declares the registry new, so that the first claim need not wait.
	// It does nothing if the registry was used by the same namespace and layout before;
	// leaf.ErrConflict if by others.
	InitWorkers(ctx context.Context) error
}

// NodeBackend is all that a running node can do.
type NodeBackend interface {
	Backend
	WorkerBackend
	Drainer
	Weigher

	// NextSnowflake issues exactly n IDs of snowflake mode.
	NextSnowflake(ctx context.Context, n int) ([]leaf.Range, error)

	// ConfirmClock tells the node that its wall clock is right after a jump, and
	// returns the time that is now believed.
	ConfirmClock(ctx context.Context) (time.Time, error)
}

// Workers is a registry of worker IDs. Moments are Unix milliseconds; 64-bit numbers
// are strings in JSON.
type Workers struct {
	Registry  string   `json:"registry"` // e.g. "zookeeper"
	Kind      string   `json:"kind"`     // "leased": a pool; "fixed": numbers belong to addresses
	Namespace string   `json:"namespace"`
	Layout    string   `json:"layout"`
	Last      int64    `json:"last"`       // the layout's highest worker ID
	Now       int64    `json:"now,string"` // the clock that State compares with
	Workers   []Worker `json:"workers"`    // by number
}

// Worker is what a registry knows about a worker ID.
type Worker struct {
	Number   int64  `json:"worker"`
	Address  string `json:"address,omitempty"` // of the last owner
	State    string `json:"state"`             // see the constants
	Own      bool   `json:"own,omitempty"`     // held by the node that answers
	Floor    int64  `json:"floor,string"`      // the last owner issues nothing below
	Bound    int64  `json:"bound,string"`      // T: the last owner issues nothing at or above
	Released bool   `json:"released,omitempty"`
}

// States of a Worker.
const (
	WorkerRunning  = "running"  // its owner was heard of within a lease
	WorkerHeld     = "held"     // its owner was not heard of, and T has not passed
	WorkerExpired  = "expired"  // T has passed without a release
	WorkerReleased = "released" // by its owner or an operator

	// WorkerUnreadable: its record cannot be read, and no claim takes the number, -1 where not even that can be.
	WorkerUnreadable = "unreadable"
)

// Info describes who answers.
type Info struct {
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started,omitzero"` // zero without a running node
	DataDir string    `json:"data_dir"`
	Stores  []string  `json:"stores"` // addresses without passwords
	HTTP    string    `json:"http,omitempty"`
	GRPC    string    `json:"grpc,omitempty"` // addresses; "" where the server is off
	RESP    string    `json:"resp,omitempty"`
	Admin   string    `json:"admin,omitempty"`
	Stage   string    `json:"stage,omitempty"` // "serving", or how far a stop is, in words
	Ready   bool      `json:"ready"`
	Reasons []string  `json:"reasons,omitempty"` // why not ready, or what needs attention
}

// Tag is one row with its options and what this node knows about it. 64-bit
// numbers are strings in JSON, because JavaScript rounds them above 2^53.
type Tag struct {
	Name        string    `json:"tag"`
	MaxID       int64     `json:"max_id,string"`
	Step        int64     `json:"step"`
	Description string    `json:"description,omitempty"`
	UpdateTime  time.Time `json:"update_time,omitzero"`
	MinStep     int64     `json:"min_step,omitempty"`
	MaxStep     int64     `json:"max_step,omitempty"`
	FixedStep   bool      `json:"fixed_step,omitempty"`
	Store       string    `json:"store,omitempty"` // name of its database, if there are several

	Fence int64  `json:"fence,string,omitempty"` // highest end of this node's ranges, 0 if none
	State string `json:"state"`                  // TagOK or TagLatched
}

// States of a Tag on the node that answers.
const (
	TagOK      = "ok"
	TagLatched = "latched" // the store went backwards, see RepairTag
)

// NewTag is a tag to be created.
type NewTag struct {
	Name        string `json:"tag"`
	Start       int64  `json:"start,string"` // first ID
	Step        int64  `json:"step"`
	Description string `json:"description,omitempty"`
	MinStep     int64  `json:"min_step,omitempty"`
	MaxStep     int64  `json:"max_step,omitempty"`
	FixedStep   bool   `json:"fixed_step,omitempty"`
}

// TagChange is an edit; nil fields stay as they are.
type TagChange struct {
	MaxID       *int64  `json:"max_id,string,omitempty"`
	Step        *int64  `json:"step,omitempty"`
	Description *string `json:"description,omitempty"`
	MinStep     *int64  `json:"min_step,omitempty"`
	MaxStep     *int64  `json:"max_step,omitempty"`
	FixedStep   *bool   `json:"fixed_step,omitempty"`
}
