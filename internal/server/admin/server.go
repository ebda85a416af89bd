package admin

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/requestid"
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

// Config is what a Server needs beside its Backend.
type Config struct {
	// Logger receives internal errors, whose cause the caller does not see. Required.
	Logger *slog.Logger

	// TCP is what a server on a TCP listener needs. Default: the server is for the
	// socket, where the permissions of the file decide.
	TCP *TCP
}

// Server serves the operations of a Backend, on listeners made by [Listen] or on TCP.
type Server struct {
	http *http.Server
	log  *slog.Logger
	tcp  *TCP // nil: for the socket
}

// NewServer returns a server that is not serving yet.
func NewServer(b manage.Backend, cfg Config) *Server {
	s := &Server{log: cfg.Logger, tcp: cfg.TCP}
	handler := s.routes(b)
	if cfg.TCP != nil {
		handler = cfg.TCP.guard(handler, cfg.Logger)
	}
	log := cfg.Logger
	s.http = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, requestid.Show(w, r, false)) }),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      readTimeout + handlerTimeout + readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxRequestHead,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	if cfg.TCP == nil {
		s.http.ConnContext = localActor
	}
	if cfg.TCP != nil && cfg.TCP.Ending != nil {
		s.http.RegisterOnShutdown(cfg.TCP.Ending)
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
	ln = accept.New(ln, accept.Config{MaxConns: limit, Logger: s.log})
	if s.tcp != nil && s.tcp.TLS != nil {
		ln = tls.NewListener(ln, s.tcp.TLS)
	}
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
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
func (s *Server) routes(b manage.Backend) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(ctx context.Context, r *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), handlerTimeout)
			defer cancel()
			r.Body = http.MaxBytesReader(w, r.Body, maxRequestBody)
			reply, err := f(ctx, r)
			if err != nil {
				problem.Write(w, requestid.Log(s.log, requestid.ID(ctx)), err)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", problem.NoStore)
			_ = json.NewEncoder(w).Encode(reply) // the client is gone
		})
	}
	for _, op := range manage.Operations() {
		handle(op.Route, func(ctx context.Context, r *http.Request) (any, error) {
			request, err := read(r, op.Request)
			if err != nil {
				return nil, err
			}
			return b.Do(ctx, request)
		})
	}
	handle("/", func(_ context.Context, r *http.Request) (any, error) { return nil, problem.NotFound(r.URL.Path) })
	return mux
}
