package auth_test

import (
	"errors"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
)

// check returns the error for a client that shows a token alone.
func check(tokens *auth.Tokens, shown string) error {
	_, err := tokens.Identify(leaf.Credentials{Token: shown})
	return err
}

func TestTokens(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		valid []string
		shown string
		ok    bool
	}{
		{"none is asked for", nil, "", true},
		{"none is asked for, one is shown", nil, "any", true},
		{"nothing shown", []string{"a"}, "", false},
		{"the token", []string{"secret"}, "secret", true},
		{"another case", []string{"secret"}, "Secret", false},
		{"cut short", []string{"secret"}, "secre", false},
		{"with more behind it", []string{"secret"}, "secret ", false},
		{"the first of two", []string{"old", "new"}, "old", true},
		{"the second of two", []string{"old", "new"}, "new", true},
		{"neither", []string{"old", "new"}, "oldnew", false},
	} {
		tokens := auth.NewTokens(tt.valid...)
		if err := check(tokens, tt.shown); (err == nil) != tt.ok || err != nil && !errors.Is(err, leaf.ErrUnauthenticated) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tokens.Required() != (len(tt.valid) > 0) {
			t.Errorf("%s: required %v", tt.name, tokens.Required())
		}
	}
}

// TestReplace exchanges tokens, and never opens a server that asked for one.
func TestReplace(t *testing.T) {
	t.Parallel()
	tokens := auth.NewTokens("old")
	if err := tokens.Replace([]string{"new"}); err != nil {
		t.Fatal(err)
	}
	if check(tokens, "old") == nil || check(tokens, "new") != nil {
		t.Error("the old token counts, or the new one does not")
	}
	if err := tokens.Replace(nil); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("without a token: %v", err)
	}
	if check(tokens, "") == nil || check(tokens, "new") != nil {
		t.Error("a refused replacement counts")
	}
	open := auth.NewTokens()
	if err := open.Replace(nil); err != nil || open.Required() {
		t.Errorf("none before and after: %v", err)
	}
}

// TestReplaceCertificates: a grant in use has the new roles at once, none while its certificate is
// not listed, and them again once it is. Whether certificates are asked for does not change.
func TestReplaceCertificates(t *testing.T) {
	t.Parallel()
	tokens := auth.NewTokens().WithNamed(nil, map[string]auth.Roles{"shop": roles(t, "issue:order")})
	shop := leaf.Credentials{Certificate: "shop"}
	kept, err := tokens.Identify(shop)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		roles map[string]auth.Roles
		order error // of the grant that is kept
		read  error
		open  error // of a connection that begins
	}{
		{"other roles", map[string]auth.Roles{"shop": roles(t, "read")}, leaf.ErrForbidden, nil, nil},
		{"no roles", nil, leaf.ErrForbidden, nil, nil},
		{"not listed", map[string]auth.Roles{"bill": roles(t, "issue")}, leaf.ErrUnauthenticated, leaf.ErrUnauthenticated, leaf.ErrUnauthenticated},
		{"listed again", map[string]auth.Roles{"shop": roles(t, "issue")}, nil, leaf.ErrForbidden, nil},
	} {
		tokens.ReplaceCertificates(tt.roles)
		_, open := tokens.Identify(shop)
		if order, read := kept.Issue("order"), kept.Read(); !errors.Is(order, tt.order) || !errors.Is(read, tt.read) || !errors.Is(open, tt.open) || !tokens.Required() {
			t.Errorf("%s: issue %v, read %v, open %v", tt.name, order, read, open)
		}
	}
	none := auth.NewTokens()
	none.ReplaceCertificates(map[string]auth.Roles{"shop": roles(t, "issue")})
	if none.Required() {
		t.Error("clients that show nothing are refused while the node runs")
	}
}
