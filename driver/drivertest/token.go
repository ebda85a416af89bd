package drivertest

import (
	"errors"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/segment"
)

var tokenCases = []testCase{
	{"tokens are kept", tokensKept},
	{"tokens refuse bad values", tokensBad},
	{"tokens need their table", tokensMissing},
}

func token(name string, words ...string) auth.Token {
	roles, err := auth.ParseRoles(words)
	if err != nil {
		panic(err)
	}
	return auth.Token{Name: name, Digest: auth.DigestOf("the secret of " + name), Roles: roles, Created: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
}

// wantTokens compares what a store, and another one on the same database, has.
func wantTokens(t *testing.T, b Backend, want ...auth.Token) {
	t.Helper()
	stores := []Store{b.Store}
	if b.Other != nil {
		stores = append(stores, b.Other(t))
	}
	for _, s := range stores {
		got, err := s.NamedTokens(ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("NamedTokens (-want +got):\n%s", diff)
		}
	}
}

func tokensKept(t *testing.T, b Backend) {
	if b.NoMeta {
		t.Skip("this database has no tokens")
	}
	wantTokens(t, b)
	admin, shop := token("admin", "admin"), token("shop", "issue:order*", "issue:发票", "snowflake", "read")
	upper := token("Shop", "issue")
	for _, tok := range []auth.Token{shop, admin, upper} {
		must(t, b.Store.CreateToken(ctx(t), tok))
	}
	wantTokens(t, b, upper, admin, shop)
	again := token("shop", "admin")
	if err := b.Store.CreateToken(ctx(t), again); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("a name twice: %v; want ErrConflict", err)
	}
	wantTokens(t, b, upper, admin, shop)
	must(t, b.Store.RevokeToken(ctx(t), "shop"))
	if err := b.Store.RevokeToken(ctx(t), "shop"); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("revoked twice: %v; want ErrConflict", err)
	}
	must(t, b.Store.CreateToken(ctx(t), again))
	wantTokens(t, b, upper, admin, again)
}

func tokensBad(t *testing.T, b Backend) {
	good := token("shop", "issue")
	edit := func(f func(*auth.Token)) auth.Token {
		tok := good
		f(&tok)
		return tok
	}
	for name, tok := range map[string]auth.Token{
		"no name":     edit(func(t *auth.Token) { t.Name = "" }),
		"a long name": edit(func(t *auth.Token) { t.Name = strings.Repeat("x", 65) }),
		"a space":     edit(func(t *auth.Token) { t.Name = "a b" }),
		"no digest":   edit(func(t *auth.Token) { t.Digest = "" }),
		"half of one": edit(func(t *auth.Token) { t.Digest = t.Digest[:32] }),
		"a secret":    edit(func(t *auth.Token) { t.Digest = strings.Repeat("x", 64) }),
		"capitals":    edit(func(t *auth.Token) { t.Digest = strings.ToUpper(t.Digest) }),
		"no role":     edit(func(t *auth.Token) { t.Roles = auth.Roles{} }),
		"a bad tag":   edit(func(t *auth.Token) { t.Roles = auth.Roles{Tags: []string{"a*b"}} }),
		"many tags":   edit(func(t *auth.Token) { t.Roles = auth.Roles{Tags: strings.Split(strings.Repeat("x ", 101)+"x", " ")} }),
		"a long tag":  edit(func(t *auth.Token) { t.Roles = auth.Roles{Tags: []string{strings.Repeat("x", 130)}} }),
		"a lot of tag": edit(func(t *auth.Token) {
			t.Roles = auth.Roles{Tags: strings.Split(strings.Repeat(strings.Repeat("x", 100)+" ", 50)+"x", " ")}
		}),
	} {
		if err := b.Store.CreateToken(ctx(t), tok); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%s: %v; want ErrBadRequest", name, err)
		}
	}
	if err := b.Store.RevokeToken(ctx(t), "a b"); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("RevokeToken: %v; want ErrBadRequest", err)
	}
	wantTokens(t, b)
}

func tokensMissing(t *testing.T, b Backend) {
	if !b.NoMeta {
		t.Skip("this database has tokens")
	}
	wantTokens(t, b)
	for call, err := range map[string]error{"CreateToken": b.Store.CreateToken(ctx(t), token("a", "read")), "RevokeToken": b.Store.RevokeToken(ctx(t), "a")} {
		if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "leaf_token") {
			t.Errorf("%s: %v; want ErrSchema that names the table", call, err)
		}
	}
}
