package manage

import (
	"context"
	"time"

	"github.com/leaf-idgen/leaf"
)

// StoreSite is where operations on tags and limits work: a running node, or a command that
// has opened the databases. In a command, each method first checks that the configured tag
// rules are those of its databases. Without segment mode all methods but Limits return leaf.ErrDisabled.
type StoreSite interface {
	Info(ctx context.Context) (Info, error)

	// Catalog returns the rows of the tags.
	Catalog(ctx context.Context) (*Catalog, error)

	// Engine is Catalog with a started engine, which knows the fence.
	Engine(ctx context.Context) (*Catalog, error)

	// Limits is Catalog for limits, which exist without segment mode, too.
	Limits(ctx context.Context) (*Catalog, error)

	// Issuer returns what issues IDs of segment mode.
	Issuer(ctx context.Context) (leaf.Issuer, error)
}

// RegistrySite is where operations on worker IDs work: a running node, or an opened registry.
type RegistrySite interface {
	// Registry returns the registry of worker IDs. Error: leaf.ErrDisabled without one.
	Registry(ctx context.Context) (*Registry, error)
}

// DirectorySite is where operations on the list of nodes work: a running node, or an opened
// directory.
type DirectorySite interface {
	// Directory returns the directory of nodes. Error: leaf.ErrDisabled without one.
	Directory(ctx context.Context) (*Directory, error)
}

// NodeSite is a running node.
type NodeSite interface {
	StoreSite
	RegistrySite
	DirectorySite

	// Status describes the node, with at most tags of its tags.
	Status(tags int) Status

	// Snowflake returns what issues IDs of snowflake mode. Error: leaf.ErrDisabled.
	Snowflake(ctx context.Context) (leaf.Issuer, error)

	// ConfirmClock tells the node that its wall clock is right after a jump. Error: leaf.ErrClock.
	ConfirmClock() (time.Time, error)

	// Reload reads the configuration again and puts into force what can change, or with plan
	// says what would.
	Reload(ctx context.Context, plan bool) (Reload, error)

	// Drain begins to stop the node. A negative delay is the node's own.
	Drain(delay time.Duration)
}
