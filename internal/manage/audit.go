package manage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/audit"
)

// AuditLog is where administrative changes are recorded. One that is nil records nothing.
type AuditLog struct {
	Store   audit.Store   // nil: the site has no database
	Node    string        // that carries changes out
	Keep    time.Duration // how long entries stay
	Timeout time.Duration // of one call

	// Actor is the actor of a change whose context names none.
	Actor Actor

	// Missed is called with each entry that could not be written to the log, and why. The change itself
	// was made. Required.
	Missed func(e audit.Entry, err error)
}

// Actor is who asks for a change.
type Actor struct {
	Who     string // e.g. "admin.token", "local user leaf"
	Address string // where the request came from
}

type actorKey struct{}

// WithActor returns a context whose changes are made by a.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// Audited is a site whose changes are recorded.
type Audited interface {
	AuditLog() *AuditLog
}

// Change says what a request does.
type Change struct {
	Operation string // in the words of the command line, e.g. "tag set"
	Object    string // e.g. "tag order"
	From, To  any    // become JSON; nil: nothing
}

// changing is a request that changes something.
type changing interface {
	change() Change
}

// changed is a reply that adds to what the audit log says of a change.
type changed interface {
	change(c *Change)
}

// carryOut runs an operation on a site. This is the one place where changes are recorded: after
// they were carried out, and before they are answered.
func carryOut(ctx context.Context, op Operation, site, request any) (any, error) {
	q, changes := request.(changing)
	s, audited := site.(Audited)
	if !changes || !audited || s.AuditLog() == nil {
		return op.run(ctx, site, request)
	}
	l, c := s.AuditLog(), q.change()
	c.From = l.before(ctx, op, site, request)
	reply, err := op.run(ctx, site, request)
	outcome := err
	if _, done := errors.AsType[*madeError](err); done {
		outcome = nil
	}
	if r, more := reply.(changed); more && outcome == nil {
		r.change(&c)
	}
	l.Record(ctx, c, outcome)
	return reply, err
}

// before returns what a change is about to replace, nil if that cannot be read: the change
// itself then says why.
func (l *AuditLog) before(ctx context.Context, op Operation, site, request any) any {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	was, err := op.was(ctx, site, request)
	if err != nil {
		return nil
	}
	return was
}

// Record adds a change to the log, with its outcome, also when ctx has ended: the caller may have left,
// but the change was carried out.
func (l *AuditLog) Record(ctx context.Context, c Change, outcome error) {
	if l == nil {
		return
	}
	now := time.Now()
	actor, named := ctx.Value(actorKey{}).(Actor)
	if !named {
		actor = l.Actor
	}
	from, to := values(c)
	e := audit.Entry{
		ID: audit.NewID(now), Time: now, Node: l.Node, Who: actor.Who, Address: actor.Address,
		Operation: c.Operation, Object: c.Object, From: from, To: to, Result: audit.Done,
	}
	if outcome != nil {
		e.Result = outcome.Error()
	}
	e = e.Fit()
	err := errNoAudit
	if l.Store != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Timeout)
		defer cancel()
		err = StoreError(l.Store.Record(ctx, e, l.Keep))
	}
	if err != nil {
		l.Missed(e, err)
	}
}

// errNoAudit is the answer when no database keeps the log.
var errNoAudit = fmt.Errorf("%w: the audit log is kept in the first database of segment mode or of the worker IDs (snowflake.registry=sql), and there is none", leaf.ErrDisabled)

// values returns both sides of a change as JSON. Of the values before, it returns only the members
// that the change names.
func values(c Change) (from, to string) {
	was, is := members(c.From), members(c.To)
	if len(is) > 0 {
		maps.DeleteFunc(was, func(name string, _ json.RawMessage) bool { _, named := is[name]; return !named })
	}
	return object(was), object(is)
}

func members(v any) (all map[string]json.RawMessage) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil // no value of a request is like that
	}
	return all
}

// object is the JSON of members in the order of their names, "" without any.
func object(members map[string]json.RawMessage) string {
	if len(members) == 0 {
		return ""
	}
	text, err := json.Marshal(members)
	if err != nil {
		return "" // it was JSON before
	}
	return string(text)
}

// AuditPage is a part of the audit log, the newest entry first.
type AuditPage struct {
	Entries []audit.Entry `json:"entries"`
	Next    string        `json:"next,omitempty"` // the Before of the next page, "" at the end
}

// ListAudit asks for a page of the audit log. Errors: leaf.ErrDisabled without a database;
// leaf.ErrNotReady if it does not answer or has no table for it; leaf.ErrBadRequest.
type ListAudit struct {
	Before string `query:"before"`
	Since  string `query:"since"` // RFC 3339
	Object string `query:"object"`
	Who    string `query:"who"`
	Limit  int    `query:"limit" must:"must be 1 to 1000"`
}

func (q ListAudit) query() (a audit.Query, err error) {
	a = audit.Query{Before: q.Before, Object: q.Object, Who: q.Who, Limit: q.Limit}
	if q.Since != "" {
		if a.Since, err = time.Parse(time.RFC3339Nano, q.Since); err != nil {
			return a, leaf.BadField("since", q.Since, "must be a time such as 2026-01-31T12:00:00Z")
		}
	}
	return a, a.Validate()
}

func (q ListAudit) run(ctx context.Context, l *AuditLog) (AuditPage, error) {
	a, err := q.query()
	if err != nil {
		return AuditPage{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*l.Timeout)
	defer cancel()
	page, next, err := l.Store.Entries(ctx, a)
	if page == nil {
		page = []audit.Entry{} // an empty list, not null
	}
	return AuditPage{page, next}, StoreError(err)
}

func auditLogOf(s Audited, _ context.Context) (*AuditLog, error) { //nolint:revive // the context comes second, as in StoreSite.Catalog
	if l := s.AuditLog(); l != nil && l.Store != nil {
		return l, nil
	}
	return nil, errNoAudit
}
