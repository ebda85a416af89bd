package console

import (
	"fmt"
	"net"
	"net/http"
	"strings"

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

// fromElsewhere refuses what a page of another site may have made a browser send.
func fromElsewhere(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" {
		if _, host, _ := strings.Cut(origin, "://"); host == "" || !strings.EqualFold(host, r.Host) {
			return fmt.Errorf("%w: a page of another site (Origin %.64q) sent the request", leaf.ErrUnauthenticated, origin)
		}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
		return fmt.Errorf("%w: a page of another site sent the request", leaf.ErrUnauthenticated)
	}
	return nil
}

// fromRebound refuses a request whose Host is a name that another site may have pointed at
// this machine. A session needs no such guard: its cookie belongs to one host.
func fromRebound(r *http.Request) error {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil || !accept.IsLoopback(local.String()) || accept.IsLoopback(r.Host) {
		return nil
	}
	return fmt.Errorf("%w: Host %.64q is no loopback address, and this server listens on one; ask by the address", leaf.ErrUnauthenticated, r.Host)
}

// admit returns an error if the request may not see the node.
func (c *Console) admit(r *http.Request) error {
	if err := fromElsewhere(r); err != nil {
		return err
	}
	if !c.cfg.Required() {
		return fromRebound(r)
	}
	if !c.sessions.valid(c.secretOf(r)) {
		return fmt.Errorf("%w: sign in with a token", leaf.ErrUnauthenticated)
	}
	return nil
}

// Admits reports whether the request is an action of a session of this console. A
// read-only console admits none.
func (c *Console) Admits(r *http.Request) bool {
	return c.acts() && r.Header.Get(Header) != "" && fromElsewhere(r) == nil && c.sessions.valid(c.secretOf(r))
}

// acts reports whether the page offers actions.
func (c *Console) acts() bool { return !c.cfg.ReadOnly && c.cfg.Required() }
