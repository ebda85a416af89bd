package manage

import (
	"context"
	"fmt"
	"reflect"

	"github.com/leaf-idgen/leaf"
)

// operations is all that an administrator can do. The routes of the administrator's HTTP
// interface and its client are made from it. The second column says on what a request works,
// and so whether it needs a running node: what a StoreSite, a RegistrySite or a DirectorySite
// has, a command can open itself; what a NodeSite has, only a node has.
var operations = []Operation{
	operation("GET /v1/info", itself[StoreSite], GetInfo.run),
	operation("GET /v1/status", itself[NodeSite], GetStatus.run),
	operation("GET /v1/audit", auditLogOf, ListAudit.run),
	operation("GET /v1/tokens", TokenSite.Tokens, ListTokens.run),
	operation("POST /v1/token", TokenSite.Tokens, CreateToken.run),
	operation("DELETE /v1/token", TokenSite.Tokens, RevokeToken.run),
	operation("GET /v1/tags", StoreSite.Catalog, ListTags.run),
	operation("GET /v1/tag", StoreSite.Catalog, GetTag.run),
	operation("POST /v1/tag", StoreSite.Catalog, CreateTag.run),
	operation("PATCH /v1/tag", StoreSite.Catalog, SetTag.run),
	operation("DELETE /v1/tag", StoreSite.Catalog, DeleteTag.run),
	operation("POST /v1/sequence", StoreSite.Catalog, CreateSequence.run),
	operation("DELETE /v1/sequence", StoreSite.Catalog, DeleteSequence.run),
	operation("POST /v1/sequence/repair", StoreSite.Engine, RepairSequence.run),
	operation("GET /v1/sequence/repair", StoreSite.Engine, PlanSequenceRepair.run),
	operation("POST /v1/repair", StoreSite.Engine, RepairTag.run),
	operation("GET /v1/repair", StoreSite.Engine, PlanRepair.run),
	operation("GET /v1/limits", StoreSite.Limits, ListLimits.run),
	operation("PATCH /v1/limit/tag", StoreSite.Limits, SetTagLimit.run),
	operation("PATCH /v1/limit/client", StoreSite.Limits, SetClientLimit.run),
	operation("POST /v1/next", StoreSite.Issuer, Next.run),
	operation("POST /v1/next-snowflake", NodeSite.Snowflake, NextSnowflake.run),
	operation("GET /v1/workers", RegistrySite.Registry, ListWorkers.run),
	operation("POST /v1/worker/release", RegistrySite.Registry, ReleaseWorker.run),
	operation("POST /v1/worker/init", RegistrySite.Registry, InitWorkers.run),
	operation("POST /v1/worker/confirm-clock", itself[NodeSite], ConfirmClock.run),
	operation("GET /v1/nodes", DirectorySite.Directory, ListNodes.run),
	operation("POST /v1/node/weight", NodeSite.Directory, SetWeight.run),
	operation("GET /v1/reload", itself[NodeSite], PlanReload.run),
	operation("POST /v1/reload", itself[NodeSite], ReloadConfig.run),
	operation("POST /v1/drain", itself[NodeSite], Drain.run),
}

// Operation is one thing that an administrator can do.
//
// Its request is a struct, whose comment says what it does and which errors it has.
//
// A field of its request with the tag query:"NAME" is a parameter of the route: an integer
// also has must:"TEXT", the error for anything else, and once:"" refuses a request that does
// not have the parameter exactly once. The other fields are the JSON body.
type Operation struct {
	Route          string       // HTTP method and path
	Request, Reply reflect.Type // structs, or a slice as the reply

	run func(ctx context.Context, site, request any) (reply any, err error)
	was func(ctx context.Context, site, request any) (state any, err error) // what a request is about to replace, nil if nothing
}

// operation makes a row of the table: part finds on a site what run works on.
func operation[Site, Part, Request, Reply any](route string,
	part func(Site, context.Context) (Part, error), run func(Request, context.Context, Part) (Reply, error),
) Operation {
	on := func(ctx context.Context, site, q any, do func(Request, context.Context, Part) (any, error)) (any, error) {
		s, ok := site.(Site)
		if !ok {
			return nil, fmt.Errorf("%w: %s does not work on a %T", leaf.ErrDisabled, route, site)
		}
		p, err := part(s, ctx)
		if err != nil {
			return nil, err
		}
		return do(q.(Request), ctx, p)
	}
	return Operation{
		Route: route, Request: reflect.TypeFor[Request](), Reply: reflect.TypeFor[Reply](),
		run: func(ctx context.Context, site, q any) (any, error) {
			return on(ctx, site, q, func(q Request, ctx context.Context, p Part) (any, error) { return run(q, ctx, p) })
		},
		was: func(ctx context.Context, site, q any) (any, error) {
			replaces, ok := q.(interface {
				was(ctx context.Context, p Part) (any, error)
			})
			if !ok {
				return nil, nil //nolint:nilnil // it replaces nothing
			}
			return on(ctx, site, q, func(_ Request, ctx context.Context, p Part) (any, error) { return replaces.was(ctx, p) })
		},
	}
}

// itself has the form of a method expression.
func itself[Site any](s Site, _ context.Context) (Site, error) { return s, nil } //nolint:revive // the context comes second, as in StoreSite.Catalog

// Operations returns all operations.
func Operations() []Operation { return operations }

// Of returns the operation of a request.
func Of(request any) (Operation, error) {
	for _, op := range operations {
		if op.Request == reflect.TypeOf(request) {
			return op, nil
		}
	}
	return Operation{}, fmt.Errorf("%w: %T is no operation", leaf.ErrBadRequest, request)
}

// Validate returns leaf.ErrBadRequest if a field of a request is outside its limits. A client
// calls it before it sends a request, and a server before it carries one out.
func Validate(request any) error {
	if v, ok := request.(interface{ validate() error }); ok {
		return v.validate()
	}
	return nil
}

// Request is one of the structs in the table: it works on a Part of a site and has a Reply.
type Request[Part, Reply any] interface {
	run(ctx context.Context, p Part) (Reply, error)
}

// Backend carries out requests, on a site or by asking a node. The command line therefore does
// not know whether it talks to a running node, or works on what it has opened itself.
//
// Errors are those of package leaf, and errors.Is works also behind a client. An operation
// that needs more than there is to work on is leaf.ErrDisabled. Safe for concurrent use.
type Backend interface {
	// Do carries out a request of one of the operations, and returns its reply. Callers that
	// know the type of the request call [Ask] or [Tell].
	Do(ctx context.Context, request any) (reply any, err error)
}

// Ask carries out a request, and returns its reply and the errors that its type names.
func Ask[Part, Reply any](ctx context.Context, b Backend, q Request[Part, Reply]) (Reply, error) {
	reply, err := b.Do(ctx, q)
	r, _ := reply.(Reply)
	return r, err
}

// Tell is Ask for a request that answers nothing but success.
func Tell[Part any](ctx context.Context, b Backend, q Request[Part, None]) error {
	_, err := b.Do(ctx, q)
	return err
}

// None is the reply of operations that answer nothing but success.
type None struct{}

// On returns the Backend that works on a site: a StoreSite, RegistrySite, DirectorySite or
// NodeSite.
func On(site any) Backend { return local{site} }

type local struct{ site any }

// Do implements Backend.
func (l local) Do(ctx context.Context, request any) (any, error) {
	op, err := Of(request)
	if err != nil {
		return nil, err
	}
	return carryOut(ctx, op, l.site, request)
}
