package grpcd_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
)

func TestHealth(t *testing.T) {
	var ready atomic.Bool
	cfg := serves(newIssuer())
	cfg.Ready = func() leaf.Readiness {
		return leaf.Readiness{Segment: leaf.ModeReadiness{Enabled: true, Ready: ready.Load()}}
	}
	s := start(t, cfg)
	c := healthpb.NewHealthClient(dial(t, s))
	ctx := within(t, 30*time.Second)
	const serving, not, unknown = healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING, healthpb.HealthCheckResponse_SERVICE_UNKNOWN

	watched := map[string]healthpb.Health_WatchClient{}
	for _, service := range []string{"", "leaf.v1.LeafService", "segment", "nobody"} {
		w, err := c.Watch(ctx, &healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		watched[service] = w
	}
	expect := func(service string, want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if resp, err := watched[service].Recv(); err != nil || resp.GetStatus() != want {
			t.Errorf("Watch of %q got %v, %v; want %v", service, resp, err, want)
		}
		if service == "nobody" {
			return
		}
		if resp, err := c.Check(ctx, &healthpb.HealthCheckRequest{Service: service}); err != nil || resp.GetStatus() != want {
			t.Errorf("Check of %q got %v, %v; want %v", service, resp, err, want)
		}
		if resp, err := c.List(ctx, &healthpb.HealthListRequest{}); err != nil || resp.GetStatuses()[service].GetStatus() != want {
			t.Errorf("List of %q got %v, %v; want %v", service, resp, err, want)
		}
	}
	expect("nobody", unknown)
	if _, err := c.Check(ctx, &healthpb.HealthCheckRequest{Service: "nobody"}); status.Code(err) != codes.NotFound {
		t.Errorf("Check of nobody got %v", err)
	}
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{not, serving, not, serving} {
		ready.Store(want == serving)
		expect("", want)
		expect("leaf.v1.LeafService", want)
		expect("segment", want)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		shut(t, s)
	}()
	for service, w := range watched {
		if resp, err := w.Recv(); service != "nobody" && (err != nil || resp.GetStatus() != not) {
			t.Errorf("Watch of %q in a shutdown got %v, %v", service, resp, err)
		} else if service != "nobody" {
			_, err = w.Recv()
			if status.Code(err) != codes.Unavailable {
				t.Errorf("Watch of %q ended with %v", service, err)
			}
		} else if status.Code(err) != codes.Unavailable {
			t.Errorf("Watch of %q ended with %v", service, err)
		}
	}
	<-done
}

// TestHealthByMode: each mode answers for itself, and the node serves if one of them does.
func TestHealthByMode(t *testing.T) {
	var state atomic.Pointer[leaf.Readiness]
	cfg := serves(newIssuer())
	cfg.Ready = func() leaf.Readiness { return *state.Load() }
	serving, waiting := leaf.ModeReadiness{Enabled: true, Ready: true}, leaf.ModeReadiness{Enabled: true}
	state.Store(&leaf.Readiness{Segment: serving, Snowflake: waiting})
	c := healthpb.NewHealthClient(dial(t, start(t, cfg)))
	ctx := within(t, 30*time.Second)
	watch, err := c.Watch(ctx, &healthpb.HealthCheckRequest{Service: "segment"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := watch.Recv(); err != nil || r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("Watch of segment got %v, %v", r, err)
	}
	for _, step := range []struct {
		state                    leaf.Readiness
		node, segment, snowflake bool
	}{
		{leaf.Readiness{Segment: serving, Snowflake: waiting}, true, true, false},
		{leaf.Readiness{Segment: serving, Snowflake: serving}, true, true, true},
		{leaf.Readiness{Segment: waiting, Snowflake: serving}, true, false, true},
		{leaf.Readiness{Segment: waiting, Snowflake: waiting}, false, false, false},
		{leaf.Readiness{Snowflake: serving}, true, false, true},
	} {
		state.Store(&step.state)
		for service, want := range map[string]bool{"": step.node, "leaf.v1.LeafService": step.node, "segment": step.segment, "snowflake": step.snowflake} {
			r, err := c.Check(ctx, &healthpb.HealthCheckRequest{Service: service})
			if err != nil || (r.GetStatus() == healthpb.HealthCheckResponse_SERVING) != want {
				t.Errorf("%+v: Check of %q got %v, %v; want serving: %t", step.state, service, r, err, want)
			}
		}
	}
	// A change of the other mode is no news.
	if r, err := watch.Recv(); err != nil || r.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("Watch of segment got %v, %v", r, err)
	}
}

// TestWatchesAreBounded: streams that need no token do not grow without end, on one
// connection or over all.
func TestWatchesAreBounded(t *testing.T) {
	cfg := serves(newIssuer())
	cfg.MaxWatches = 6
	s := start(t, cfg)
	ctx := within(t, 30*time.Second)
	watch := func(c healthpb.HealthClient) (end func(), err error) {
		ctx, cancel := context.WithCancel(ctx)
		w, err := c.Watch(ctx, &healthpb.HealthCheckRequest{})
		if err == nil {
			_, err = w.Recv()
		}
		return cancel, err
	}
	one, two := healthpb.NewHealthClient(dial(t, s)), healthpb.NewHealthClient(dial(t, s))
	var ends []func()
	for i, step := range []struct {
		c    healthpb.HealthClient
		want codes.Code
	}{
		{one, codes.OK},
		{one, codes.OK},
		{one, codes.OK},
		{one, codes.OK},
		{one, codes.ResourceExhausted},
		{two, codes.OK},
		{two, codes.OK},
		{two, codes.ResourceExhausted},
	} {
		end, err := watch(step.c)
		if status.Code(err) != step.want {
			t.Errorf("stream %d: %v; want %v", i, err, step.want)
		}
		ends = append(ends, end)
	}
	if _, err := two.Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
		t.Errorf("Check: %v", err)
	}
	ends[0]()
	for {
		end, err := watch(two) // the server learns of the end in its time
		ends = append(ends, end)
		if err == nil {
			break
		}
		if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
	}
	for _, end := range ends {
		end()
	}
}

func TestReflection(t *testing.T) {
	s := start(t, serves(newIssuer()))
	conn := dial(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	st, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(req *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		t.Helper()
		if err := st.Send(req); err != nil {
			t.Fatal(err)
		}
		resp, err := st.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	var names []string
	list := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	for _, service := range list.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	want := []string{"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection", "leaf.v1.LeafService"}
	if !slices.Equal(names, want) {
		t.Errorf("the services are %q, want %q", names, want)
	}
	files := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{
		FileContainingSymbol: "leaf.v1.LeafService",
	}}).GetFileDescriptorResponse().GetFileDescriptorProto()
	if len(files) != 1 {
		t.Fatalf("got %d files", len(files))
	}
	var file descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(files[0], &file); err != nil {
		t.Fatal(err)
	}
	if file.GetName() != leafpb.File_leaf_v1_leaf_proto.Path() || len(file.GetService()) != 1 {
		t.Errorf("got the file %q", file.GetName())
	}
	shut(t, s) // does not wait for the stream that still is open
}
