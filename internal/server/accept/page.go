package accept

import (
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/leaf-idgen/leaf"
)

// OtherSite returns leaf.ErrUnauthenticated if a page of another site may have made a browser
// send the request.
func OtherSite(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && !sameHost(origin, r.Host) {
		return fmt.Errorf("%w: a page of another site (Origin %.64q) sent the request", leaf.ErrUnauthenticated, origin)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
		return fmt.Errorf("%w: a page of another site sent the request", leaf.ErrUnauthenticated)
	}
	return nil
}

func sameHost(origin, host string) bool {
	_, authority, _ := strings.Cut(origin, "://")
	return authority != "" && strings.EqualFold(authority, host)
}

// Rebound returns leaf.ErrUnauthenticated if the request's Host is a name that a page of another
// site may have pointed at this machine (DNS rebinding): the listener is on loopback, and the
// Host is not. cure is the end of the text: what the caller does instead.
func Rebound(r *http.Request, cure string) error {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil || !IsLoopback(local.String()) || IsLoopback(r.Host) {
		return nil
	}
	return fmt.Errorf("%w: Host %.64q is no loopback address, and this server listens on one; %s", leaf.ErrUnauthenticated, r.Host, cure)
}
