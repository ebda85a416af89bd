package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/accept"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

// Bounds of one request.
const (
	maxRequestBody = 64 << 10
	maxRequestHead = 16 << 10
	readTimeout    = 5 * time.Second  // from the first byte to the end of the body
	handlerTimeout = 30 * time.Second // for the Backend
	idleTimeout    = 2 * time.Minute
)

// Config is what a Server needs beside its NodeBackend.
type Config struct {
	// Logger receives internal errors, whose cause the caller does not see. Required.
	Logger *slog.Logger

	// TCP is what a server on a TCP listener needs. Default: the server is for the
	// socket, where the permissions of the file decide.
	TCP *TCP
}

// Server serves a NodeBackend, on listeners made by [Listen] or on TCP.
type Server struct {
	http *http.Server
	log  *slog.Logger
	tcp  *TCP // nil: for the socket
}

// NewServer returns a server that is not serving yet.
func NewServer(b manage.NodeBackend, cfg Config) *Server {
	s := &Server{log: cfg.Logger, tcp: cfg.TCP}
	handler := s.routes(b)
	if cfg.TCP != nil {
		handler = cfg.TCP.guard(handler, cfg.Logger)
	}
	log := cfg.Logger
	s.http = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      readTimeout + handlerTimeout + readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxRequestHead,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return s
}

// Serve accepts connections until Stop, then returns nil; any other end is an
// error.
func (s *Server) Serve(ln net.Listener) error {
	limit := 0 // an administrator on this machine can always get in
	if s.tcp != nil {
		limit = cmp.Or(s.tcp.MaxConns, defaultMaxConns)
	}
	bounded := accept.New(ln, accept.Config{MaxConns: limit, Logger: s.log})
	if err := s.http.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve administration: %w", err)
	}
	return nil
}

// Stop closes the listeners and waits for the requests under way. When ctx ends it
// cuts them off and returns ctx's error. It may be called more than once.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close()
		return fmt.Errorf("stop administration: %w", err)
	}
	return nil
}

// routes names a tag in the query, never in the path: the router would clean names
// such as ".." away.
func (s *Server) routes(b manage.NodeBackend) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(ctx context.Context, r *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), handlerTimeout)
			defer cancel()
			r.Body = http.MaxBytesReader(w, r.Body, maxRequestBody)
			reply, err := f(ctx, r)
			if err != nil {
				problem.Write(w, s.log, err)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			_ = json.NewEncoder(w).Encode(reply) // nobody is left to tell
		})
	}
	handle("GET /v1/info", func(ctx context.Context, _ *http.Request) (any, error) { return b.Info(ctx) })
	handle("GET /v1/tags", func(ctx context.Context, _ *http.Request) (any, error) { return b.Tags(ctx) })
	handle("GET /v1/tag", func(ctx context.Context, r *http.Request) (any, error) { return b.Tag(ctx, tagName(r)) })
	handle("POST /v1/tag", func(ctx context.Context, r *http.Request) (any, error) {
		var tag manage.NewTag
		if err := decode(r.Body, &tag); err != nil {
			return nil, err
		}
		return b.CreateTag(ctx, tag)
	})
	handle("PATCH /v1/tag", func(ctx context.Context, r *http.Request) (any, error) {
		var change manage.TagChange
		if err := decode(r.Body, &change); err != nil {
			return nil, err
		}
		return b.SetTag(ctx, tagName(r), change)
	})
	handle("DELETE /v1/tag", func(ctx context.Context, r *http.Request) (any, error) {
		return struct{}{}, b.DeleteTag(ctx, tagName(r))
	})
	handle("POST /v1/repair", func(ctx context.Context, r *http.Request) (any, error) {
		var req repairRequest
		if err := decode(r.Body, &req); err != nil {
			return nil, err
		}
		return b.RepairTag(ctx, tagName(r), req.Above)
	})
	handle("GET /v1/repair", func(ctx context.Context, r *http.Request) (any, error) {
		text := r.URL.Query().Get("above")
		above, err := strconv.ParseInt(cmp.Or(text, "0"), 10, 64)
		if err != nil {
			return nil, leaf.BadField("above", text, "must be a number")
		}
		return b.PlanRepair(ctx, tagName(r), above)
	})
	handle("GET /v1/limits", func(ctx context.Context, _ *http.Request) (any, error) { return b.Limits(ctx) })
	limit := func(set func(ctx context.Context, name string, change manage.LimitChange) (manage.Limit, error), word string) func(context.Context, *http.Request) (any, error) {
		return func(ctx context.Context, r *http.Request) (any, error) {
			var change manage.LimitChange
			names := r.URL.Query()[word]
			if len(names) != 1 {
				return nil, leaf.BadField(word, strings.Join(names, ", "), "must be given once")
			}
			if err := decode(r.Body, &change); err != nil {
				return nil, err
			}
			return set(ctx, names[0], change)
		}
	}
	handle("PATCH /v1/limit/tag", limit(b.SetTagLimit, "tag"))
	handle("PATCH /v1/limit/client", limit(b.SetClientLimit, "client"))
	handle("POST /v1/next", func(ctx context.Context, r *http.Request) (any, error) {
		n, err := count(r)
		if err != nil {
			return nil, err
		}
		ranges, err := b.Next(ctx, tagName(r), n)
		return nextReply{ranges}, err
	})
	handle("POST /v1/next-snowflake", func(ctx context.Context, r *http.Request) (any, error) {
		n, err := count(r)
		if err != nil {
			return nil, err
		}
		ranges, err := b.NextSnowflake(ctx, n)
		return nextReply{ranges}, err
	})
	handle("GET /v1/workers", func(ctx context.Context, _ *http.Request) (any, error) { return b.Workers(ctx) })
	handle("POST /v1/worker/release", func(ctx context.Context, r *http.Request) (any, error) {
		text := r.URL.Query().Get("worker")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return nil, leaf.BadField("worker", text, "must be a worker ID")
		}
		return struct{}{}, b.ReleaseWorker(ctx, n)
	})
	handle("POST /v1/worker/init", func(ctx context.Context, _ *http.Request) (any, error) {
		return struct{}{}, b.InitWorkers(ctx)
	})
	handle("POST /v1/worker/confirm-clock", func(ctx context.Context, _ *http.Request) (any, error) {
		now, err := b.ConfirmClock(ctx)
		return clockReply{now}, err
	})
	handle("POST /v1/drain", func(ctx context.Context, r *http.Request) (any, error) {
		delay, err := drainDelay(r)
		if err != nil {
			return nil, err
		}
		return struct{}{}, b.Drain(ctx, delay)
	})
	handleNodes(handle, b)
	handle("/", func(_ context.Context, r *http.Request) (any, error) { return nil, problem.NotFound(r.URL.Path) })
	return mux
}

// handleNodes adds the routes of a Weigher.
func handleNodes(handle func(pattern string, f func(ctx context.Context, r *http.Request) (any, error)), b manage.Weigher) {
	handle("GET /v1/nodes", func(ctx context.Context, _ *http.Request) (any, error) { return b.Nodes(ctx) })
	handle("POST /v1/node/weight", func(ctx context.Context, r *http.Request) (any, error) {
		text := r.URL.Query().Get("weight")
		weight, err := strconv.Atoi(text)
		if err != nil {
			return nil, leaf.BadField("weight", text, "must be a number")
		}
		return b.SetWeight(ctx, weight)
	})
}

type repairRequest struct {
	Above int64 `json:"above,string"`
}

type nextReply struct {
	Ranges []leaf.Range `json:"ranges"`
}

type clockReply struct {
	Now time.Time `json:"now"`
}

func count(r *http.Request) (int, error) {
	text := r.URL.Query().Get("n")
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > leaf.MaxBatch {
		return 0, leaf.BadField("n", text, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
	}
	return n, nil
}

func tagName(r *http.Request) string { return r.URL.Query().Get("tag") }

// drainDelay returns the delay that r asks for, below 0 for none. What it does not
// understand it refuses: somebody who wanted a delay must not get none.
func drainDelay(r *http.Request) (time.Duration, error) {
	if n, err := io.ReadFull(r.Body, make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return 0, leaf.BadField("body", "...", "must be empty; the delay is ?delay=DURATION")
	}
	query := r.URL.Query()
	for name, values := range query {
		if name != "delay" || len(values) > 1 {
			return 0, leaf.BadField("parameter", name, "is not known or there twice; the only one is delay")
		}
	}
	if !query.Has("delay") {
		return -1, nil
	}
	text := query.Get("delay")
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, leaf.BadField("delay", text, "must be a duration from 0s to 10m")
	}
	return d, manage.CheckDrainDelay(d)
}
