package httpd

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

// view is the handler of a route that takes no IDs.
func view(serve func(http.ResponseWriter, *http.Request) error) handler {
	return func(w http.ResponseWriter, r *http.Request, _ client, _ []string) error { return serve(w, r) }
}

func (a *api) serveHealth(w http.ResponseWriter, _ *http.Request) error {
	setHeader(w, contentTypeText)
	w.Write([]byte("ok\n"))
	return nil
}

// readiness is the body of /readyz. Modes that are not enabled are left out.
type readiness struct {
	Ready   bool                     `json:"ready"`
	Modes   map[string]modeReadiness `json:"modes,omitempty"`
	Reasons []string                 `json:"reasons,omitempty"`
	Cluster string                   `json:"cluster,omitempty"`
}

type modeReadiness struct {
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons,omitempty"`
}

// serveReady answers for the mode of the query, without one for the node: it is ready if
// one of its modes is.
func (a *api) serveReady(w http.ResponseWriter, r *http.Request) error {
	state := a.ready()
	if a.draining() {
		state = state.Without("the server is shutting down")
	}
	ready, reasons, err := state.Of(r.URL.Query().Get("mode"))
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	modes := map[string]modeReadiness{}
	for name, mode := range map[string]leaf.ModeReadiness{leaf.SegmentMode: state.Segment, leaf.SnowflakeMode: state.Snowflake} {
		if mode.Enabled {
			modes[name] = modeReadiness{mode.Ready, mode.Reasons}
		}
	}
	return writeJSON(w, status, readiness{ready, modes, reasons, state.Cluster})
}

// serveClock tells the time to a peer that compares its own clock with it.
func (a *api) serveClock(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, clockReading{time.Now().UnixMilli()})
}

// clockReading is the body of /v1/clock.
type clockReading struct {
	UnixMilli int64 `json:"unix_ms"`
}

func (a *api) serveMetrics(w http.ResponseWriter, r *http.Request) error {
	w.Header()["Cache-Control"] = []string{problem.NoStore}
	a.metrics.ServeHTTP(w, r)
	return nil
}

// writeJSON encodes value first, so that an error can still become a reply.
func writeJSON(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %T: %w", value, err)
	}
	setHeader(w, contentTypeJSON)
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
	return nil
}
