package grpcd

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
)

// healthEvery is how often Ready is asked for the watchers.
const healthEvery = 250 * time.Millisecond

// The names that the health service knows: the whole server and LeafService serve if any
// mode does, and each mode has its own.
var healthNames = []string{"", leafpb.LeafService_ServiceDesc.ServiceName, leaf.SegmentMode, leaf.SnowflakeMode}

// modeOf returns the mode that a name stands for, "" for any; ok is false for a name that
// is not known.
func modeOf(service string) (mode string, ok bool) {
	if service == leafpb.LeafService_ServiceDesc.ServiceName {
		return "", true
	}
	return service, slices.Contains(healthNames, service)
}

// health is grpc.health.v1. That of grpc-go has no end of Watch, for which a shutdown
// would wait.
type health struct {
	healthpb.UnimplementedHealthServer
	ready    func() leaf.Readiness
	stopping chan struct{}

	mu      sync.Mutex
	stopped bool
	serving map[string]bool // by mode, as of the last poll; replaced, never changed
	changed chan struct{}   // closed, and another one made, when serving changes

	watches watches
}

func newHealth(ready func() leaf.Readiness, maxWatches int) *health {
	return &health{ready: ready, stopping: make(chan struct{}), changed: make(chan struct{}), watches: watches{most: maxWatches}}
}

// poll asks Ready and tells the watchers what has changed.
func (h *health) poll() {
	r := h.ready()
	serving := map[string]bool{}
	for _, mode := range []string{"", leaf.SegmentMode, leaf.SnowflakeMode} {
		serving[mode], _, _ = r.Of(mode)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped {
		h.set(serving)
	}
}

// stop says NOT_SERVING from now on and ends the watchers.
func (h *health) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped {
		h.stopped = true
		close(h.stopping)
		h.set(map[string]bool{})
	}
}

// set is called with mu held.
func (h *health) set(serving map[string]bool) {
	if !maps.Equal(serving, h.serving) {
		h.serving = serving
		close(h.changed)
		h.changed = make(chan struct{})
	}
}

func (h *health) last(mode string) (healthpb.HealthCheckResponse_ServingStatus, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.serving[mode] {
		return healthpb.HealthCheckResponse_SERVING, h.changed
	}
	return healthpb.HealthCheckResponse_NOT_SERVING, h.changed
}

// Check says whether a service is ready now. Error: NOT_FOUND.
func (h *health) Check(_ context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	mode, ok := modeOf(req.GetService())
	if !ok {
		return nil, status.Errorf(codes.NotFound, "no service %.64q", req.GetService())
	}
	h.poll()
	st, _ := h.last(mode)
	return &healthpb.HealthCheckResponse{Status: st}, nil
}

// List says which services are ready.
func (h *health) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	h.poll()
	all := map[string]*healthpb.HealthCheckResponse{}
	for _, name := range healthNames {
		mode, _ := modeOf(name)
		st, _ := h.last(mode)
		all[name] = &healthpb.HealthCheckResponse{Status: st}
	}
	return &healthpb.HealthListResponse{Statuses: all}, nil
}

// Watch says whether a service is ready, now and after every change, until the server
// stops. A service that does not exist is SERVICE_UNKNOWN all the time. Error:
// RESOURCE_EXHAUSTED beyond Config.MaxWatches.
func (h *health) Watch(req *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	done, err := h.watches.begin(stream.Context())
	if err != nil {
		return err
	}
	defer done()
	mode, known := modeOf(req.GetService())
	h.poll()
	sent := healthpb.HealthCheckResponse_UNKNOWN // which is never sent
	for {
		st, changed := h.last(mode)
		if !known {
			st = healthpb.HealthCheckResponse_SERVICE_UNKNOWN
		}
		if st != sent {
			if err := stream.Send(&healthpb.HealthCheckResponse{Status: st}); err != nil {
				return err
			}
			sent = st
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-h.stopping:
			if st != healthpb.HealthCheckResponse_SERVING {
				return status.Error(codes.Unavailable, errStopping.Error())
			}
		}
	}
}
