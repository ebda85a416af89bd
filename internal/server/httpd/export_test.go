package httpd

import (
	"fmt"
	"net/http"
)

// Handler returns what serves cfg behind net/http.
func Handler(cfg Config) http.Handler { return newAPI(cfg) }

// Understood reports whether the fast path answers a request that starts b, with
// its key and the length of its head.
func Understood(b []byte) (key string, size int, ok bool) {
	h, v := parseHead(b)
	return string(h.key), h.size, v == understood
}

// Foreign reports whether b can no longer become a request of the fast path.
func Foreign(b []byte) bool {
	_, v := parseHead(b)
	return v == foreign
}

// PrefersJSON is the choice between the two representations of IDs.
var PrefersJSON = prefersJSON

// Route is a route of the server.
type Route struct {
	Path    string
	Methods []string
	Public  bool
}

// Routes returns the routes of cfg.
func Routes(cfg Config) (routes []Route) {
	for _, r := range newAPI(cfg).routes {
		routes = append(routes, Route{r.path, r.methods, r.public})
	}
	return routes
}

// ParseNext returns what the body of POST /v1/next asks for, an entry as "mode tag count".
func ParseNext(body []byte) (entries []string, err error) {
	asks, err := parseAsks(body)
	for _, q := range asks {
		entries = append(entries, fmt.Sprintf("%v %q %d", q.mode, q.tag, q.count))
	}
	return entries, err
}
