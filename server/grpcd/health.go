package grpcd

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf/leafpb"
)

// healthEvery is how often Ready is asked for the watchers.
const healthEvery = 250 * time.Millisecond

// health is grpc.health.v1 for the whole server ("") and for LeafService, which are
// ready at the same time. That of grpc-go has no end of Watch, for which a shutdown
// would wait.
type health struct {
	healthpb.UnimplementedHealthServer
	ready    func() (bool, []string)
	stopping chan struct{}

	mu      sync.Mutex
	stopped bool
	serving bool          // as of the last poll
	changed chan struct{} // closed, and another one made, when serving changes
}

func newHealth(ready func() (bool, []string)) *health {
	return &health{ready: ready, stopping: make(chan struct{}), changed: make(chan struct{})}
}

// poll asks Ready and tells the watchers what has changed.
func (h *health) poll() {
	ready, _ := h.ready()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.set(ready && !h.stopped)
}

// stop says NOT_SERVING from now on and ends the watchers.
func (h *health) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped {
		h.stopped = true
		close(h.stopping)
		h.set(false)
	}
}

// set is called with mu held.
func (h *health) set(serving bool) {
	if serving != h.serving {
		h.serving = serving
		close(h.changed)
		h.changed = make(chan struct{})
	}
}

func (h *health) last() (healthpb.HealthCheckResponse_ServingStatus, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return statusFor(h.serving), h.changed
}

func statusFor(serving bool) healthpb.HealthCheckResponse_ServingStatus {
	if serving {
		return healthpb.HealthCheckResponse_SERVING
	}
	return healthpb.HealthCheckResponse_NOT_SERVING
}

// known reports whether the health of service is known.
func known(service string) bool {
	return service == "" || service == leafpb.LeafService_ServiceDesc.ServiceName
}

// Check says whether a service is ready now. Error: NOT_FOUND.
func (h *health) Check(_ context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if !known(req.GetService()) {
		return nil, status.Errorf(codes.NotFound, "no service %.64q", req.GetService())
	}
	h.poll()
	st, _ := h.last()
	return &healthpb.HealthCheckResponse{Status: st}, nil
}

// List says whether all services are ready.
func (h *health) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	h.poll()
	st, _ := h.last()
	return &healthpb.HealthListResponse{Statuses: map[string]*healthpb.HealthCheckResponse{
		"": {Status: st},
		leafpb.LeafService_ServiceDesc.ServiceName: {Status: st},
	}}, nil
}

// Watch says whether a service is ready, now and after every change, until the server
// stops. A service that does not exist is SERVICE_UNKNOWN all the time.
func (h *health) Watch(req *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	h.poll()
	sent := healthpb.HealthCheckResponse_UNKNOWN // which is never sent
	for {
		st, changed := h.last()
		if !known(req.GetService()) {
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
