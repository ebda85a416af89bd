package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/accept"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

// TCP is what a server on a TCP listener needs: file permissions do not protect it.
type TCP struct {
	// Tokens are those of which every administrative request must show one, as
	// "Authorization: Bearer TOKEN". nil, or a set that asks for none: administrative
	// requests are refused, because every user of the machine can connect to loopback.
	Tokens *auth.Tokens

	// TLS is what the listener speaks. Default: plain HTTP, for loopback. It must not ask for
	// HTTP/2, which this server does not speak.
	TLS *tls.Config

	// MaxConns limits the open connections. One more is closed at once. The socket has
	// no limit, so that an administrator can always get in. Default 1,000.
	MaxConns int

	// Session reports whether a request without a token belongs to a browser that has shown
	// one, which it returns, and cannot have been made by a page of another site. Default: none
	// does.
	Session func(r *http.Request) (token string, ok bool)

	// Ending is called when a stop begins, so that streams of Open end. Default: nothing.
	Ending func()

	// Open are routes beside the administrative ones that need no token, by the
	// pattern of http.ServeMux: health checks and metrics.
	Open map[string]http.Handler

	// Profiles serves the profiles of the process below /debug/pprof/, which need a token
	// like administrative requests.
	Profiles bool
}

// guard lets only requests with a token through to next.
func (t *TCP) guard(next http.Handler, log *slog.Logger) http.Handler {
	if t.Profiles {
		next = withProfiles(next)
	}
	reads := make(chan struct{}, maxReads)
	admin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, reader, err := t.admit(r)
		if err == nil && reader {
			ctx, cancel := context.WithTimeout(r.Context(), readerWait)
			defer cancel()
			select {
			case reads <- struct{}{}:
				defer func() { <-reads }()
			case <-ctx.Done():
				err = fmt.Errorf("%w: too many requests of tokens without the role admin", leaf.ErrNotReady)
			}
		}
		if err != nil {
			if errors.Is(err, leaf.ErrUnauthenticated) {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			problem.Write(w, log, err)
			return
		}
		next.ServeHTTP(w, remoteActor(r, who))
	})
	mux := http.NewServeMux()
	for pattern, h := range t.Open {
		mux.Handle(pattern, h)
	}
	mux.Handle("/", admin)
	return mux
}

// withProfiles serves the profiles in front of next.
func withProfiles(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index) // with the named ones: heap, goroutine, …
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.Handle("/", next)
	return mux
}

// maxReads is how many requests of tokens without the role admin run at a time. They share the
// connections to databases and registries with loads and renewals, which would wait behind many of
// them. One more waits for readerWait at most.
const (
	maxReads   = 2
	readerWait = 5 * time.Second
)

// admit returns which token or session lets the request through, for the audit log, and whether it may
// only read.
func (t *TCP) admit(r *http.Request) (who string, reader bool, err error) {
	if t.Tokens == nil || !t.Tokens.Required() {
		return "", false, fmt.Errorf("%w: administration over TCP needs admin.token; commands on the node's machine use the socket in its data directory", leaf.ErrUnauthenticated)
	}
	shown, console := "", false
	if len(r.Header["Authorization"]) == 0 && t.Session != nil {
		shown, console = t.Session(r)
	}
	if !console {
		shown, err = auth.Bearer(r.Header["Authorization"])
	}
	var grant *auth.Grant
	if err == nil {
		grant, err = t.Tokens.Identify(leaf.Credentials{Token: shown, Address: accept.AddressIn(r.RemoteAddr)})
	}
	switch {
	case err != nil:
		if errors.Is(err, leaf.ErrThrottled) {
			return "", false, err // whose text has an end of its own
		}
		return "", false, fmt.Errorf("%w; administration needs the header Authorization: Bearer with the value of admin.token, or a named token with the role admin or read", err)
	case manage.ForReaders(r.Method, r.URL.Path):
		err = grant.Read()
	default:
		err = grant.Admin()
	}
	if console {
		return grant.Who() + ", in the console", grant.Admin() != nil, err
	}
	return grant.Who(), grant.Admin() != nil, err
}

// defaultMaxConns is the default of TCP.MaxConns.
const defaultMaxConns = 1000
