package app

import (
	"context"
	"strings"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/trace"
	"github.com/leaf-idgen/leaf/worker"
)

// openTracer makes what sends spans, if trace.url says where.
func (a *App) openTracer() {
	if a.cfg.Trace.URL != "" {
		a.tracer = trace.New(trace.Config{URL: a.cfg.Trace.URL, Node: a.dir.NodeID(), Version: a.opts.Version, Logger: a.log})
	}
}

// sendTraces sends spans until ctx ends.
func (a *App) sendTraces(ctx context.Context) {
	if a.tracer != nil {
		a.tracer.Run(ctx)
	}
}

// Claim implements worker.Registry. Once a file is lost it claims nothing, as in the database that has taken the place of another
// one, and lasts until the holder of the number is closed.
func (r *registry) Claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	if r.files.isLost() {
		<-ctx.Done()
		return worker.Record{}, ctx.Err()
	}
	s := r.tracer.Start(ctx, trace.Client, "worker claim")
	s.Set("leaf.registry", r.Info().Name)
	claimed, err := r.Registry.Claim(ctx, req)
	if err == nil {
		s.Set("leaf.worker", claimed.Number)
	}
	s.End(err)
	return claimed, err
}

// traced is a Backend whose changes have spans, below those of their callers.
type traced struct {
	manage.Backend

	tracer *trace.Tracer
}

// Do implements manage.Backend.
func (t traced) Do(ctx context.Context, request any) (any, error) {
	route, changes := routeOfChange(request)
	if !changes {
		return t.Backend.Do(ctx, request)
	}
	s := t.tracer.Start(ctx, trace.Server, route)
	reply, err := t.Backend.Do(ctx, request)
	s.End(err)
	return reply, err
}

// routeOfChange returns the route of a request that changes something. One for IDs does not count.
func routeOfChange(request any) (route string, changes bool) {
	switch request.(type) {
	case manage.Next, manage.NextSnowflake:
		return "", false
	}
	op, err := manage.Of(request)
	return op.Route, err == nil && !strings.HasPrefix(op.Route, "GET ")
}
