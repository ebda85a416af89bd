package manage

import (
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/internal/auth"
)

// Tokens are the named tokens of all nodes.
type Tokens struct {
	Store   auth.Store
	Timeout time.Duration // of one call
	Asked   bool          // a node with this configuration asks for them

	// Changed makes a committed change take effect at once. nil without a running node.
	Changed func(ctx context.Context)
}

// TokenSite is where named tokens are kept.
type TokenSite interface {
	// Tokens returns them. Error: leaf.ErrDisabled without a database or file for them.
	Tokens(ctx context.Context) (*Tokens, error)
}

// Token is a named token, without its secret.
type Token struct {
	Name    string    `json:"name"`
	Roles   []string  `json:"roles"` // e.g. "issue:order*", "read"
	Created time.Time `json:"created"`
}

// TokenList is the reply to ListTokens.
type TokenList struct {
	Tokens []Token `json:"tokens"`
	Asked  bool    `json:"asked"` // a node with this configuration asks for them: auth.named is set
}

// ListTokens asks for the named tokens, by name.
type ListTokens struct{}

func (ListTokens) run(ctx context.Context, t *Tokens) (TokenList, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	all, err := t.Store.NamedTokens(ctx)
	list := TokenList{Tokens: []Token{}, Asked: t.Asked}
	for _, token := range all {
		list.Tokens = append(list.Tokens, Token{token.Name, token.Roles.Words(), token.Created})
	}
	return list, StoreError(err)
}

func (ListTokens) forAdmins() {}
func (ListAudit) forAdmins()  {}
func (PlanRepair) forAdmins() {} // it asks all nodes, through rows of the database

// CreateToken makes a named token. Only the digest of its secret travels. Errors:
// leaf.ErrConflict if there is one of that name; leaf.ErrBadRequest.
type CreateToken struct {
	Name   string   `json:"name"`
	Digest string   `json:"digest"` // SHA-256 of the secret, in hexadecimal digits
	Roles  []string `json:"roles"`
}

func (q CreateToken) token() (t auth.Token, err error) {
	t = auth.Token{Name: q.Name, Digest: q.Digest, Created: time.Now().UTC().Truncate(time.Second)}
	if t.Roles, err = auth.ParseRoles(q.Roles); err != nil {
		return t, err
	}
	return t, t.Validate()
}

func (q CreateToken) run(ctx context.Context, t *Tokens) (Token, error) {
	token, err := q.token()
	if err == nil {
		err = t.do(ctx, func(ctx context.Context) error { return t.Store.CreateToken(ctx, token) })
	}
	return Token{token.Name, token.Roles.Words(), token.Created}, err
}

// do makes a change, which takes effect at once on the node that makes it.
func (t *Tokens) do(ctx context.Context, change func(ctx context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	if err := StoreError(change(bounded)); err != nil {
		return err
	}
	if t.Changed != nil {
		t.Changed(ctx)
	}
	return nil
}

// RevokeToken deletes a named token. It takes effect at once on the node that does it, also on
// connections that are open, and on the others within limit.refresh and one reading. Error:
// leaf.ErrConflict if there is none of that name.
type RevokeToken struct {
	Name string `query:"name" once:""`
}

func (q RevokeToken) run(ctx context.Context, t *Tokens) (None, error) {
	return None{}, t.do(ctx, func(ctx context.Context) error { return t.Store.RevokeToken(ctx, q.Name) })
}

func tokenObject(name string) string { return "token " + name }

func (q CreateToken) change() Change {
	return Change{Operation: "token create", Object: tokenObject(q.Name), To: map[string]string{"roles": strings.Join(q.Roles, " ")}}
}

func (q RevokeToken) change() Change {
	return Change{Operation: "token revoke", Object: tokenObject(q.Name)}
}

func (q RevokeToken) was(ctx context.Context, t *Tokens) (any, error) {
	all, err := t.Store.NamedTokens(ctx)
	for _, token := range all {
		if token.Name == q.Name {
			return map[string]string{"roles": strings.Join(token.Roles.Words(), " ")}, nil
		}
	}
	return nil, err
}

// ForReaders reports whether a request by HTTP needs the role read only: all other ones need
// the role admin.
func ForReaders(method, path string) bool {
	_, ok := readable[method+" "+path]
	return ok
}

// readable are the routes of the operations that only look, without those for admins.
var readable = func() map[string]struct{} {
	routes := map[string]struct{}{}
	for _, op := range operations {
		if _, kept := reflect.TypeAssert[interface{ forAdmins() }](reflect.Zero(op.Request)); strings.HasPrefix(op.Route, "GET ") && !kept {
			routes[op.Route] = struct{}{}
		}
	}
	return routes
}()
