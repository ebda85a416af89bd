package grpcd_test

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/server/admin"
	"github.com/leaf-idgen/leaf/server/grpcd"
)

// node is an admin.NodeBackend that notes the arguments of the last call and answers
// with something in every field, or with err.
type node struct {
	admin.NodeBackend
	got []any
	err error
}

func (n *node) note(args ...any) error {
	n.got = append([]any{}, args...)
	return n.err
}

func (n *node) Info(context.Context) (admin.Info, error) { return fullInfo, n.note() }

func (n *node) Tags(context.Context) ([]admin.Tag, error) {
	return []admin.Tag{fullTag, {Name: "z"}}, n.note()
}

func (n *node) Tag(_ context.Context, name string) (admin.Tag, error) {
	if name == "panic" {
		panic("the node is broken")
	}
	return fullTag, n.note(name)
}

func (n *node) CreateTag(_ context.Context, tag admin.NewTag) (admin.Tag, error) {
	return fullTag, n.note(tag)
}

func (n *node) SetTag(_ context.Context, name string, change admin.TagChange) (admin.Tag, error) {
	return fullTag, n.note(name, change)
}

func (n *node) DeleteTag(_ context.Context, name string) error { return n.note(name) }

func (n *node) RepairTag(_ context.Context, name string, above int64) (admin.Repair, error) {
	return admin.Repair{Tag: fullTag, Plan: fullPlan}, n.note(name, above)
}

func (n *node) PlanRepair(_ context.Context, name string, above int64) (admin.RepairPlan, error) {
	return fullPlan, n.note("plan", name, above)
}

func (n *node) Limits(context.Context) (admin.Limits, error) { return fullLimits, n.note() }

func (n *node) SetTagLimit(_ context.Context, tag string, change admin.LimitChange) (admin.Limit, error) {
	return limitOf(admin.LimitOfTag), n.note(tag, change)
}

func (n *node) SetClientLimit(_ context.Context, client string, change admin.LimitChange) (admin.Limit, error) {
	return limitOf(admin.LimitOfClient), n.note(client, change)
}

func (n *node) Workers(context.Context) (admin.Workers, error)      { return fullWorkers, n.note() }
func (n *node) ReleaseWorker(_ context.Context, number int64) error { return n.note(number) }
func (n *node) InitWorkers(context.Context) error                   { return n.note() }

func (n *node) ConfirmClock(context.Context) (time.Time, error) { return when, n.note() }

func (n *node) Nodes(context.Context) (admin.Nodes, error) { return fullNodes, n.note() }

func (n *node) SetWeight(_ context.Context, weight int) (admin.Node, error) {
	return fullNode, n.note(weight)
}

func (n *node) Drain(_ context.Context, delay time.Duration) error { return n.note(delay) }

// startAdmin serves n as the administrator's socket does, without the guard of TCP.
func startAdmin(t *testing.T, n admin.NodeBackend) *grpc.ClientConn {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s := admin.NewServer(n, admin.Config{Logger: log, GRPC: grpcd.NewAdmin(n, log)})
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	conn, err := grpc.NewClient("passthrough:///"+ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		if err := s.Stop(within(t, 20*time.Second)); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// adminCalls has every method of the service at least once.
var adminCalls = []struct {
	method string
	req    proto.Message
	want   proto.Message // nil: bad_request
	got    []any         // what the backend is called with; nil: it is not asked
}{
	{"GetInfo", &leafpb.GetInfoRequest{}, fullInfoPB, []any{}},
	{"ListTags", &leafpb.ListTagsRequest{}, &leafpb.ListTagsResponse{Tags: []*leafpb.Tag{fullTagPB, {Tag: "z"}}}, []any{}},
	{"GetTag", &leafpb.GetTagRequest{Tag: "../a b"}, &leafpb.GetTagResponse{Tag: fullTagPB}, []any{"../a b"}},
	{"CreateTag", fullCreatePB, &leafpb.CreateTagResponse{Tag: fullTagPB}, []any{fullNewTag}},
	{"UpdateTag", &leafpb.UpdateTagRequest{Tag: "t"}, &leafpb.UpdateTagResponse{Tag: fullTagPB}, []any{"t", admin.TagChange{}}},
	{"UpdateTag", fullUpdatePB, &leafpb.UpdateTagResponse{Tag: fullTagPB}, []any{"t", fullTagChange}},
	{"DeleteTag", &leafpb.DeleteTagRequest{Tag: "t"}, &leafpb.DeleteTagResponse{}, []any{"t"}},
	{"RepairTag", &leafpb.RepairTagRequest{Tag: "t", Above: 9}, &leafpb.RepairTagResponse{Tag: fullTagPB, Plan: fullPlanPB}, []any{"t", int64(9)}},
	{"PlanRepair", &leafpb.PlanRepairRequest{Tag: "t", Above: 9}, &leafpb.PlanRepairResponse{Plan: fullPlanPB}, []any{"plan", "t", int64(9)}},
	{"ListLimits", &leafpb.ListLimitsRequest{}, fullLimitsPB, []any{}},
	{"SetTagLimit", &leafpb.SetTagLimitRequest{Tag: "../a b"}, &leafpb.SetTagLimitResponse{Limit: limitPB(1)}, []any{"../a b", admin.LimitChange{}}},
	{"SetTagLimit", fullTagLimitPB, &leafpb.SetTagLimitResponse{Limit: limitPB(1)}, []any{"t", fullLimitChange}},
	{"SetClientLimit", &leafpb.SetClientLimitRequest{Client: new("c")}, &leafpb.SetClientLimitResponse{Limit: limitPB(2)}, []any{"c", admin.LimitChange{}}},
	{"SetClientLimit", fullClientLimitPB, &leafpb.SetClientLimitResponse{Limit: limitPB(2)}, []any{"", fullLimitChange}},
	{"SetClientLimit", &leafpb.SetClientLimitRequest{Blocked: new(true)}, nil, nil},
	{"ListWorkers", &leafpb.ListWorkersRequest{}, fullWorkersPB, []any{}},
	{"ReleaseWorker", &leafpb.ReleaseWorkerRequest{Number: new(int64(0))}, &leafpb.ReleaseWorkerResponse{}, []any{int64(0)}},
	{"ReleaseWorker", &leafpb.ReleaseWorkerRequest{}, nil, nil},
	{"ReleaseWorker", &leafpb.ReleaseWorkerRequest{Number: new(int64(-1))}, nil, nil},
	{"InitWorkers", &leafpb.InitWorkersRequest{}, &leafpb.InitWorkersResponse{}, []any{}},
	{"ConfirmClock", &leafpb.ConfirmClockRequest{}, &leafpb.ConfirmClockResponse{Time: timestamppb.New(when)}, []any{}},
	{"ListNodes", &leafpb.ListNodesRequest{}, fullNodesPB, []any{}},
	{"SetWeight", &leafpb.SetWeightRequest{Weight: new(int32(0))}, &leafpb.SetWeightResponse{Node: fullNodePB}, []any{0}},
	{"SetWeight", &leafpb.SetWeightRequest{Weight: new(int32(-1))}, &leafpb.SetWeightResponse{Node: fullNodePB}, []any{-1}}, // the node decides
	{"SetWeight", &leafpb.SetWeightRequest{}, nil, nil},
	{"Drain", &leafpb.DrainRequest{}, &leafpb.DrainResponse{}, []any{time.Duration(-1)}},
	{"Drain", &leafpb.DrainRequest{Delay: durationpb.New(0)}, &leafpb.DrainResponse{}, []any{time.Duration(0)}},
	{"Drain", &leafpb.DrainRequest{Delay: durationpb.New(time.Minute)}, &leafpb.DrainResponse{}, []any{time.Minute}},
	{"Drain", &leafpb.DrainRequest{Delay: durationpb.New(-1)}, nil, nil},
	{"Drain", &leafpb.DrainRequest{Delay: durationpb.New(time.Hour)}, nil, nil},
	{"Drain", &leafpb.DrainRequest{Delay: &durationpb.Duration{Seconds: 1, Nanos: -1}}, nil, nil},
}

func TestAdmin(t *testing.T) {
	n := &node{}
	conn := startAdmin(t, n)
	var missing []string
	for _, m := range leafpb.AdminService_ServiceDesc.Methods {
		missing = append(missing, m.MethodName)
	}
	for _, tt := range adminCalls {
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == tt.method })
		call := func() (proto.Message, error) {
			var resp proto.Message = &leafpb.DrainResponse{}
			if tt.want != nil {
				resp = tt.want.ProtoReflect().New().Interface()
			}
			return resp, conn.Invoke(within(t, 20*time.Second), "/leaf.v1.AdminService/"+tt.method, tt.req, resp)
		}
		n.got, n.err = nil, nil
		resp, err := call()
		if diff := cmp.Diff(tt.got, n.got); diff != "" {
			t.Errorf("%s %v: the node was asked (-want +got):\n%s", tt.method, tt.req, diff)
		}
		if tt.want == nil {
			checkStatus(t, err, "bad_request")
			continue
		}
		if diff := cmp.Diff(tt.want, resp, protocmp.Transform()); diff != "" || err != nil {
			t.Errorf("%s %v: %v (-want +got):\n%s", tt.method, tt.req, err, diff)
		}
		n.err = leaf.ErrConflict
		_, err = call()
		checkStatus(t, err, "conflict")
	}
	if len(missing) > 0 {
		t.Errorf("methods without a case: %v", missing)
	}
}

func TestAdminEndsWell(t *testing.T) {
	conn := startAdmin(t, &node{})
	c := leafpb.NewAdminServiceClient(conn)
	ctx := within(t, 20*time.Second)
	_, err := c.GetTag(ctx, &leafpb.GetTagRequest{Tag: "panic"})
	checkStatus(t, err, "internal")
	if _, err := c.GetTag(ctx, &leafpb.GetTagRequest{Tag: "a"}); err != nil {
		t.Errorf("after a panic: %v", err)
	}
	// What issues IDs to everybody is not here, and the administrator is not there.
	if _, err := leafpb.NewLeafServiceClient(conn).Next(ctx, &leafpb.NextRequest{Tag: "a"}); status.Code(err) != codes.Unimplemented {
		t.Errorf("LeafService on the administrator's listener: %v", err)
	}
	public := leafpb.NewAdminServiceClient(dial(t, start(t, serves(newIssuer()))))
	if _, err := public.GetInfo(ctx, &leafpb.GetInfoRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("AdminService on the public listener: %v", err)
	}
	st, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	if resp, err := st.Recv(); err != nil || resp.GetListServicesResponse().GetService()[2].GetName() != "leaf.v1.AdminService" {
		t.Errorf("reflection: %v, %v", resp, err)
	}
	_ = st.CloseSend()
	_, _ = st.Recv() // the end, which the listener waits for
}
