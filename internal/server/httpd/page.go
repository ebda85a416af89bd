package httpd

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// refusePage refuses what a web page may have made a browser send. Two things give such a
// request away: its origin, or, after the page has pointed a name of its own at this
// machine (DNS rebinding), its Host. A node that asks for a token needs no such guard: no
// page has one. The original's two paths are left out, because proxies send them with any
// Host, and the page of another site cannot read the reply.
func (a *api) refusePage(r *http.Request) error {
	suspicion := fromPage(r)
	if suspicion == nil {
		return nil
	}
	if _, err := a.access.Open(leaf.Credentials{}); errors.Is(err, leaf.ErrUnauthenticated) {
		return nil // a token was needed to come this far
	}
	return suspicion
}

func fromPage(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && !sameHost(origin, r.Host) {
		return fmt.Errorf("%w: a page of another site (Origin %.64q) sent the request; set auth.token to allow it", leaf.ErrUnauthenticated, origin)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
		return fmt.Errorf("%w: a page of another site sent the request; set auth.token to allow it", leaf.ErrUnauthenticated)
	}
	if r.Method == http.MethodPost && r.Header.Get("Origin") == "" {
		return nil // a browser says where a POST comes from
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil || !accept.IsLoopback(local.String()) || accept.IsLoopback(r.Host) {
		return nil
	}
	return fmt.Errorf("%w: Host %.64q is no loopback address, and this server listens on one; set auth.token, or ask by the address", leaf.ErrUnauthenticated, r.Host)
}

func sameHost(origin, host string) bool {
	_, authority, _ := strings.Cut(origin, "://")
	return authority != "" && strings.EqualFold(authority, host)
}
