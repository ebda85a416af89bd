package httpd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/server/problem"
)

// api is what both paths serve.
type api struct {
	issuers  [2]leaf.Issuer // by Mode
	cache    func(context.Context) (any, error)
	db       func(context.Context) (any, error)
	decode   func(id int64) (Decoded, error)
	metrics  http.Handler // nil: no such route
	ready    func() (bool, []string)
	draining func() bool
	viewTime time.Duration // bound of cache and db
	log      *slog.Logger
}

func newAPI(cfg Config) *api {
	cfg = cfg.WithDefaults()
	return &api{
		issuers:  [2]leaf.Issuer{Segment: cfg.Segment, Snowflake: cfg.Snowflake},
		cache:    cfg.Cache,
		db:       cfg.DB,
		decode:   cfg.Decode,
		metrics:  cfg.Metrics,
		ready:    cfg.Ready,
		draining: func() bool { return false },
		viewTime: cfg.WriteTimeout / 2,
		log:      cfg.Logger,
	}
}

// ServeHTTP implements http.Handler. It routes by itself: http.ServeMux cleans
// paths, and a tag may look like one that needs cleaning ("..", "a%2F%2Fb").
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := a.route(w, r); err != nil {
		problem.Write(w, a.log, err)
	}
}

// route answers r, or returns an error if it has written nothing.
func (a *api) route(w http.ResponseWriter, r *http.Request) (err error) {
	defer recoverTo(&err)
	segments, err := splitPath(r.URL)
	if err != nil {
		return err
	}
	switch {
	case len(segments) == 4 && segments[0] == "api" && segments[2] == "get":
		switch segments[1] {
		case Segment.String():
			return a.serveIDs(w, r, Segment, segments[3])
		case Snowflake.String():
			return a.serveIDs(w, r, Snowflake, segments[3])
		}
	case len(segments) == 2 && segments[0] == "v1" && segments[1] == "clock":
		return a.view(w, r, a.serveClock)
	case len(segments) == 1:
		switch segments[0] {
		case "healthz":
			return a.view(w, r, a.serveHealth)
		case "readyz":
			return a.view(w, r, a.serveReady)
		case "cache":
			return a.view(w, r, a.serveState(a.cache))
		case "db":
			return a.view(w, r, a.serveState(a.db))
		case "decodeSnowflakeId":
			return a.view(w, r, a.serveDecode)
		case "metrics":
			if a.metrics != nil {
				return a.view(w, r, a.serveMetrics)
			}
		}
	}
	return problem.NotFound(r.URL.Path)
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

// ended gives an error from the end of a request's context a sentinel, if it has none:
// the client went away, Shutdown gave up, or a view took too long. All of them can be
// retried.
func ended(err error) error {
	if leaf.ClassOf(err).Err != nil {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", leaf.ErrNotReady, err)
	}
	return err
}

// recoverTo turns a panic of a handler into an internal error with its stack.
func recoverTo(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}
