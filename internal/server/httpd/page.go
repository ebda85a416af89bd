package httpd

import (
	"fmt"
	"net/http"

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
	if a.access.Guarded() {
		return nil // a token was needed to come this far
	}
	return suspicion
}

func fromPage(r *http.Request) error {
	if err := accept.OtherSite(r); err != nil {
		return fmt.Errorf("%w; set auth.token to allow it", err)
	}
	if r.Method == http.MethodPost && r.Header.Get("Origin") == "" {
		return nil // a browser says where a POST comes from
	}
	return accept.Rebound(r, "set auth.token, or ask by the address")
}
