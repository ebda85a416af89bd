package httpd

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/requestid"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

// api is what both paths serve.
type api struct {
	access    leaf.Access
	mayRead   func(leaf.Credentials) error // cache and db
	formats   *format.Formats
	routes    []route
	cache     func(context.Context, PageRequest) (Page, error)
	db        func(context.Context, PageRequest) (Page, error)
	times     idtime.Layout
	metrics   http.Handler // nil: no such route
	console   http.Handler // nil: no such route
	ready     func() leaf.Readiness
	draining  func() bool
	leaving   func() bool   // each reply ends its connection
	viewTime  time.Duration // bound of cache and db
	batchTime time.Duration // bound of a request for several tags

	requestIDs func() bool // every request gets an ID
	log        *slog.Logger
}

func newAPI(cfg Config) *api {
	cfg = cfg.WithDefaults()
	a := &api{
		access:    cfg.Access,
		mayRead:   cfg.MayRead,
		formats:   cfg.Formats,
		cache:     cfg.Cache,
		db:        cfg.DB,
		times:     cfg.Times,
		metrics:   cfg.Metrics,
		console:   cfg.Console,
		ready:     cfg.Ready,
		draining:  func() bool { return false },
		leaving:   func() bool { return false },
		viewTime:  cfg.WriteTimeout / 2,
		batchTime: cfg.WriteTimeout - cfg.WriteTimeout/4,
		log:       cfg.Logger,

		requestIDs: cfg.RequestIDs,
	}
	a.routes = a.table()
	return a
}

// route is one path of the server.
type route struct {
	path    string // with {NAME} for a segment of any text
	methods []string
	public  bool // for every client, and never refused: Access is not asked
	serve   handler
}

// handler answers a request, or returns an error if it has written nothing. open is
// the segments that the path leaves open, decoded.
type handler func(w http.ResponseWriter, r *http.Request, c client, open []string) error

// table returns the routes.
func (a *api) table() []route {
	get := []string{http.MethodGet}
	read := []string{http.MethodGet, http.MethodHead}
	routes := []route{
		{"/api/segment/get/{tag}", get, false, a.serveIDs(Segment)},
		{"/api/snowflake/get/{key}", get, false, a.serveIDs(Snowflake)},
		{"/v1/sequence/next/{sequence}/{entity}", get, false, a.serveSequence("count", askNext)},
		{"/v1/sequence/peek/{sequence}/{entity}", get, false, a.serveSequence("", askPeek)},
		{"/v1/sequence/skip/{sequence}/{entity}", []string{http.MethodPost}, false, a.serveSequence("to", askSkip)},
		{"/v1/next", []string{http.MethodPost}, false, a.serveNext},
		{"/cache", read, false, a.servePages("/cache", a.cache)},
		{"/db", read, false, a.servePages("/db", a.db)},
		{"/decodeSnowflakeId", read, false, view(a.serveDecode)},
		{"/v1/snowflake/decode", read, false, view(a.serveDecoded)},
		{"/v1/snowflake/range", read, false, view(a.serveRange)},
		{"/v1/clock", read, true, view(a.serveClock)},
		{"/healthz", read, true, view(a.serveHealth)},
		{"/readyz", read, true, view(a.serveReady)},
		{"/openapi.json", read, true, view(a.serveOpenAPI)},
	}
	if a.metrics != nil {
		routes = append(routes, route{"/metrics", read, true, view(a.serveMetrics)})
	}
	return routes
}

// ServeHTTP implements http.Handler. It routes by itself: http.ServeMux cleans
// paths, and a tag may look like one that needs cleaning ("..", "a%2F%2Fb").
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.leaving() {
		w.Header().Set("Connection", "close")
	}
	r = requestid.Show(w, r, a.requestIDs())
	if err := a.route(w, r); err != nil {
		e, id := report(a.log, err, requestid.ID(r.Context()))
		if id != "" {
			w.Header()[requestid.Field] = []string{id}
		}
		e.Write(w)
	}
}

// route answers r, or returns an error if it has written nothing.
func (a *api) route(w http.ResponseWriter, r *http.Request) (err error) {
	defer recoverTo(&err)
	segments, err := splitPath(r.URL)
	if err != nil {
		return err
	}
	if a.console != nil && len(segments) > 1 && segments[0] == "console" {
		a.console.ServeHTTP(w, r)
		return nil
	}
	for _, rt := range a.routes {
		open, ok := rt.match(segments)
		if !ok {
			continue
		}
		if err := checkMethod(r, rt.methods...); err != nil {
			return err
		}
		var c client
		if !rt.public {
			if err := refuseRange(r); err != nil {
				return err
			}
			shown, err := credentials(r)
			if err != nil {
				return err
			}
			shown.Request = requestid.ID(r.Context())
			if c, err = a.admit(shown); err != nil {
				return err
			}
			if rt.path == "/cache" || rt.path == "/db" {
				if err := a.mayRead(shown); err != nil {
					return err
				}
			}
			if !strings.HasPrefix(rt.path, "/api/") {
				if err := a.refusePage(r); err != nil {
					return err
				}
			}
		}
		return rt.serve(w, r, c, open)
	}
	return problem.NotFound(r.URL.Path)
}

// match reports whether a path with these segments belongs to route rt, and returns the texts
// in the open segments of rt. A slash at the end is ignored, as in the Java server. It is no
// part of a tag: clients percent-encode the slashes of a tag.
func (rt route) match(segments []string) (open []string, ok bool) {
	rest := rt.path[1:]
	if last := len(segments) - 1; segments[last] == "" && last == strings.Count(rt.path, "/") {
		segments = segments[:last]
	}
	for i, s := range segments {
		want, after, more := strings.Cut(rest, "/")
		if more != (i+1 < len(segments)) {
			return nil, false
		}
		if strings.HasPrefix(want, "{") {
			open = append(open, s)
		} else if s != want {
			return nil, false
		}
		rest = after
	}
	return open, true
}

// splitPath returns the segments of the path, each percent-decoded once.
func splitPath(u *url.URL) ([]string, error) {
	// RawPath is the path as it was sent, or empty if that is what encoding Path
	// anew would give. In the latter case no slash in Path was encoded.
	raw := u.RawPath
	if raw == "" {
		return strings.Split(strings.TrimPrefix(u.Path, "/"), "/"), nil
	}
	segments := strings.Split(strings.TrimPrefix(raw, "/"), "/")
	for i, s := range segments {
		decoded, err := url.PathUnescape(s)
		if err != nil {
			return nil, leaf.BadField("path", raw, "must be percent-encoded correctly")
		}
		segments[i] = decoded
	}
	return segments, nil
}

// checkMethod returns a 405 unless r's method is one of allow.
func checkMethod(r *http.Request, allow ...string) error {
	if slices.Contains(allow, r.Method) {
		return nil
	}
	return problem.MethodNotAllowed(r.Method, allow...)
}

// refuseRange refuses a request for a part of a reply, which a client such as wget sends when a reply was cut off. Without that
// it would get another reply, skip as many bytes of that as it has, and put the parts of two IDs together to a third one.
func refuseRange(r *http.Request) error {
	if ranges := r.Header["Range"]; len(ranges) > 0 {
		return leaf.BadField("Range", strings.Join(ranges, ","), "must not be given: the next reply has other IDs")
	}
	return nil
}

// report returns the problem for the error of a request, and the request's ID. An internal error
// gets an ID if the request has none: the reply says that the log has the cause, and the ID finds
// it there.
func report(log *slog.Logger, err error, id string) (*problem.Error, string) {
	if id == "" && problem.Of(err).Status == http.StatusInternalServerError {
		id = requestid.New()
	}
	return problem.Report(requestid.Log(log, id), err), id
}

// recoverTo turns a panic of a handler into an internal error with its stack.
func recoverTo(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}
