package auth

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
)

// Grant is what a client was let in by, and what it may do. A server may keep it for a
// connection: once its token is revoked, every method returns leaf.ErrUnauthenticated. A role
// that is missing is leaf.ErrForbidden. A check costs no lock and no memory.
type Grant struct {
	Name  string // of the token or certificate, "" of one from the configuration
	who   string // for errors
	roles atomic.Pointer[Roles]

	revoked atomic.Bool
	digest  digest // of a named token

	once    sync.Once
	issuers *leaf.Issuers // see Issuers
}

func newGrant(name, who string, roles Roles) *Grant {
	g := &Grant{Name: name, who: who}
	g.roles.Store(&roles)
	return g
}

// renew gives the grant other roles, and ends a revocation.
func (g *Grant) renew(roles Roles) {
	g.roles.Store(&roles)
	g.revoked.Store(false)
}

// everything is the grant of clients that need no token, and of auth.token.
func everything(who string) *Grant {
	return newGrant("", who, Roles{All: true, Snowflake: true, Read: true})
}

// Free reports whether the grant issues everything and cannot be revoked, so that nothing
// needs to be asked for each ID.
func (g *Grant) Free() bool { return g.Name == "" }

// Who names the owner of the grant in texts.
func (g *Grant) Who() string { return g.who }

// Issue returns an error unless the tag may be issued.
func (g *Grant) Issue(tag string) error {
	if g.roles.Load().issues(tag) && !g.revoked.Load() {
		return nil
	}
	return g.refuse(fmt.Sprintf("%s for tag %q", RoleIssue, tag))
}

// IssueSnowflake returns an error unless IDs of snowflake mode may be issued.
func (g *Grant) IssueSnowflake() error { return g.check(g.roles.Load().Snowflake, RoleSnowflake) }

// Read returns an error unless the state of the node may be read.
func (g *Grant) Read() error { return g.check(g.roles.Load().Read, RoleRead) }

// Admin returns an error unless the node may be administered.
func (g *Grant) Admin() error { return g.check(g.roles.Load().Admin, RoleAdmin) }

func (g *Grant) check(has bool, role string) error {
	if has && !g.revoked.Load() {
		return nil
	}
	return g.refuse(role)
}

func (g *Grant) refuse(role string) error {
	if g.revoked.Load() {
		return fmt.Errorf("%w: %s was revoked or replaced", leaf.ErrUnauthenticated, g.who)
	}
	return fmt.Errorf("%w: %s has not the role %s", leaf.ErrForbidden, g.who, role)
}

// Issuers returns what make returned at the first call.
func (g *Grant) Issuers(make func() *leaf.Issuers) *leaf.Issuers {
	g.once.Do(func() { g.issuers = make() })
	return g.issuers
}
