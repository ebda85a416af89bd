package console

import (
	"fmt"
	"net/http"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// Header is sent by the page with each of its requests. A form of another site cannot send
// it, and a script of another site would have to ask first, which is refused.
const Header = "X-Leaf-Console"

// policy allows the embedded files and nothing else.
const policy = "default-src 'none'; connect-src 'self'; img-src 'self' data:; script-src 'self'; style-src 'self'; " +
	"form-action 'none'; frame-ancestors 'none'; base-uri 'self'"

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// admit returns an error if the request may not see the node.
func (c *Console) admit(r *http.Request) error {
	if err := accept.OtherSite(r); err != nil {
		return err
	}
	if !c.cfg.Required() {
		return accept.Rebound(r, "ask by the address") // a session needs no such guard: its cookie belongs to one host
	}
	if !c.sessions.valid(c.secretOf(r)) {
		return fmt.Errorf("%w: sign in with a token", leaf.ErrUnauthenticated)
	}
	return nil
}

// Admits reports whether the request is made by the page in a session of this console, and
// returns the token of the session, which says what it may do. A read-only console admits none.
func (c *Console) Admits(r *http.Request) (token string, ok bool) {
	if c.cfg.ReadOnly || !c.cfg.Required() || r.Header.Get(Header) == "" || accept.OtherSite(r) != nil {
		return "", false
	}
	return c.sessions.token(c.secretOf(r))
}

// acts reports whether the page offers actions to who has shown a token.
func (c *Console) acts(token string) bool {
	return !c.cfg.ReadOnly && c.cfg.Required() && (c.cfg.Acts == nil || c.cfg.Acts(token))
}
