package console_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// TestTokens: a token that the page makes opens what its roles say until the page revokes it. The
// page shows its secret once.
func TestTokens(t *testing.T) {
	t.Parallel()
	a := node(t, func(c *config.Config) { c.Auth.Named = config.NamedStore })
	b := open(t, consoleOf(a), 1280, 900)
	b.signIn()
	b.visit("tokens")
	b.shows("No named token.")
	named := func() []manage.Token {
		t.Helper()
		list, err := manage.Ask(t.Context(), a.Backend(), manage.ListTokens{})
		if err != nil || !list.Asked {
			t.Fatal(list, err)
		}
		return list.Tokens
	}

	b.click("#create-token")
	b.put("#field-name", "shop")
	b.click("#confirm") // what is refused is said, and the dialog stays
	b.until(`document.querySelector('dialog .fault').textContent.includes('role')`)
	b.put("#field-tags", "leaf-*  order")
	b.click("#confirm")
	b.until(`document.querySelector('dialog .fault').textContent === 'Tags are for the role issue.'`)
	b.click("#field-issue")
	b.click("#cancel")
	b.until(`!document.querySelector('dialog')`)
	if all := named(); len(all) != 0 {
		t.Fatalf("there is a token although the dialog was cancelled: %+v", all)
	}

	b.click("#create-token")
	b.put("#field-name", "shop")
	b.click("#field-issue")
	b.put("#field-tags", "leaf-*  order")
	b.shot("token-create")
	b.click("#confirm")
	b.until(`document.querySelector('#secret')`)
	secret := eval[string](b, `document.querySelector('#secret').textContent`)
	b.shot("token-secret")
	b.click("#cancel") // closes
	b.until(`!document.querySelector('dialog')`)
	b.shows("issue:leaf-* issue:order")
	if eval[bool](b, fmt.Sprintf(`document.documentElement.outerHTML.includes(%q)`, secret)) {
		t.Error("the page still has the secret")
	}
	b.shot("tokens")
	for tag, want := range map[string]int{"leaf-segment-test": http.StatusOK, "invoice": http.StatusForbidden} {
		if got := servertest.StatusWith(t, a.Addr(), tag, secret); got != want {
			t.Errorf("an ID of %s with the token: %d, want %d", tag, got, want)
		}
	}

	b.click(`[data-revoke="shop"]`)
	b.click("#cancel")
	b.until(`!document.querySelector('dialog')`)
	if all := named(); len(all) != 1 {
		t.Fatalf("revoked although the dialog was cancelled: %+v", all)
	}
	b.click(`[data-revoke="shop"]`)
	b.click("#confirm")
	b.shows("No named token.")
	if got := servertest.StatusWith(t, a.Addr(), "leaf-segment-test", secret); got != http.StatusUnauthorized {
		t.Errorf("with the token that was revoked: %d", got)
	}
	b.visit("audit")
	b.shows("token create")
	b.shows("token revoke")
	b.shows("admin.token, in the console")
	if eval[bool](b, fmt.Sprintf(`document.documentElement.outerHTML.includes(%q)`, secret)) {
		t.Error("the audit log has the secret")
	}
}

// TestReaderSeesNoTokens: who has not the role admin has no page about tokens, also by its address.
// Who revokes the token of the own session is signed out.
func TestReaderSeesNoTokens(t *testing.T) {
	t.Parallel()
	a := node(t, func(c *config.Config) { c.Auth.Named = config.NamedStore })
	b := open(t, consoleOf(a), 390, 844)
	b.signIn()
	made := map[string]string{}
	for _, role := range []string{"read", "admin"} {
		b.visit("tokens")
		b.click("#create-token")
		b.put("#field-name", role)
		b.click("#field-" + role)
		b.click("#confirm")
		b.until(`document.querySelector('#secret')`)
		made[role] = eval[string](b, `document.querySelector('#secret').textContent`)
		b.click("#cancel")
		b.until(`!document.querySelector('dialog')`)
	}
	b.shows("admin")
	b.click("#sign-out")

	b.put("#token", made["read"]+"\r")
	b.shows("read-only")
	eval[string](b, `location.hash = '#/tokens'`)
	b.until(`document.querySelector('[data-page="overview"][aria-current]')`)
	if eval[int](b, `document.querySelectorAll('[data-page="tokens"], #create-token').length`) != 0 {
		t.Error("a reader has the page")
	}
	b.click("#sign-out")

	b.put("#token", made["admin"]+"\r")
	b.visit("tokens")
	b.click(`[data-revoke="admin"]`)
	b.click("#confirm")
	b.until(`document.querySelector('#token')`)
}
