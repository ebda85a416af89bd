package admin

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/server/problem"
)

// TCP is what a server on a TCP listener needs, where no file permissions decide who
// may connect.
type TCP struct {
	// Token is what every administrative request must show, as "Authorization: Bearer
	// TOKEN". Default: none is asked for, and the listener must be on loopback.
	Token string

	// MaxConns limits the open connections. One more is closed at once. The socket has
	// no limit, so that an administrator can always get in. Default 1,000.
	MaxConns int

	// Open are routes beside the administrative ones that need no token, by the
	// pattern of http.ServeMux: health checks and metrics.
	Open map[string]http.Handler
}

// guard lets only those requests through to next that an administrator can have meant.
//
// A web page that an administrator visits can make the browser send requests to
// 127.0.0.1. Two things give such a request away: its Origin, or, after the page has
// pointed a name of its own at 127.0.0.1 (DNS rebinding), its Host.
func (t *TCP) guard(next http.Handler, log *slog.Logger) http.Handler {
	admin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := t.admit(r); err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			problem.Write(w, log, err)
			return
		}
		next.ServeHTTP(w, r)
	})
	mux := http.NewServeMux()
	for pattern, h := range t.Open {
		mux.Handle(pattern, h)
	}
	mux.Handle("/", admin)
	return mux
}

func (t *TCP) admit(r *http.Request) error {
	if t.Token != "" {
		shown, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !found || subtle.ConstantTimeCompare([]byte(shown), []byte(t.Token)) != 1 {
			return fmt.Errorf("%w: administration needs the header Authorization: Bearer with the value of auth.token", leaf.ErrUnauthenticated)
		}
		return nil
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		return fmt.Errorf("%w: a request with an Origin (%.64q) comes from a web page; set auth.token to allow it", leaf.ErrUnauthenticated, origin)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
		return fmt.Errorf("%w: the request comes from another web site; set auth.token to allow it", leaf.ErrUnauthenticated)
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("%w: Host %.64q is not this machine's loopback address; set auth.token to be reachable by name", leaf.ErrUnauthenticated, r.Host)
	}
	return nil
}

// defaultMaxConns is the default of TCP.MaxConns.
const defaultMaxConns = 1000

// withGRPC passes requests of gRPC on to grpc, if there is one.
func withGRPC(next, grpc http.Handler) http.Handler {
	if grpc == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			grpc.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func protocols(grpc bool) *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(grpc)
	return &p
}
