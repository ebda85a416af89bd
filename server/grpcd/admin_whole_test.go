package grpcd_test

import (
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/server/admin"
)

var when = time.Date(2026, 11, 22, 1, 2, 3, 4000, time.UTC)

// The values of this file have something in every field, and so have their messages;
// TestAdminLeavesNothingOut sees to it.

var fullInfo = admin.Info{
	Version: "v", PID: 7, Started: when, DataDir: "/d", Stores: []string{"a", "b"}, HTTP: "h", GRPC: "g",
	RESP: "r", Admin: "m", Stage: "serving", Ready: true, Reasons: []string{"x"},
}

var fullInfoPB = &leafpb.GetInfoResponse{
	Version: "v", Pid: 7, StartTime: timestamppb.New(when), DataDir: "/d", Stores: []string{"a", "b"}, Http: "h", Grpc: "g",
	Resp: "r", Admin: "m", Stage: "serving", Ready: true, Reasons: []string{"x"},
}

var (
	fullPlan = admin.RepairPlan{
		Row: 31, Nodes: []admin.RepairNode{{Node: "a", End: 121, State: admin.RepairNodeLatched}},
		Posted: 119, ClusterFence: 120, Above: 121, First: 122, Refused: "no",
	}
	fullPlanPB = &leafpb.RepairPlan{
		Row: 31, Nodes: []*leafpb.RepairNode{{Node: "a", End: 121, State: "latched"}},
		Posted: 119, ClusterFence: 120, Above: 121, First: 122, Refused: "no",
	}
)

var fullTag = admin.Tag{
	Name: "order", MaxID: 1 << 60, Step: 2, Description: "d", UpdateTime: when, MinStep: 3, MaxStep: 4,
	FixedStep: true, Store: "s", Fence: 5, State: admin.TagLatched,
}

var fullTagPB = &leafpb.Tag{
	Tag: "order", MaxId: 1 << 60, Step: 2, Description: "d", UpdateTime: timestamppb.New(when), MinStep: 3, MaxStep: 4,
	FixedStep: true, Store: "s", Fence: 5, Latched: true,
}

var fullNewTag = admin.NewTag{Name: "t", Start: 1, Step: 2, Description: "d", MinStep: 3, MaxStep: 4, FixedStep: true}

var fullCreatePB = &leafpb.CreateTagRequest{Tag: "t", Start: 1, Step: 2, Description: "d", MinStep: 3, MaxStep: 4, FixedStep: true}

// Edits have every field present and some of them zero.
var fullTagChange = admin.TagChange{
	MaxID: new(int64(1)), Step: new(int64(2)), Description: new(""), MinStep: new(int64(0)), MaxStep: new(int64(4)), FixedStep: new(false),
}

var fullUpdatePB = &leafpb.UpdateTagRequest{
	Tag: "t", MaxId: new(int64(1)), Step: new(int64(2)), Description: new(""), MinStep: new(int64(0)), MaxStep: new(int64(4)), FixedStep: new(false),
}

var fullLimitChange = admin.LimitChange{Rate: new(int64(0)), Quota: new(int64(1 << 60)), Blocked: new(false)}

var fullTagLimitPB = &leafpb.SetTagLimitRequest{Tag: "t", Rate: new(int64(0)), Quota: new(int64(1 << 60)), Blocked: new(false)}

var fullClientLimitPB = &leafpb.SetClientLimitRequest{Client: new(""), Rate: new(int64(0)), Quota: new(int64(1 << 60)), Blocked: new(false)}

func limitOf(kind string) admin.Limit {
	return admin.Limit{Kind: kind, Name: "n", Rate: 1, Quota: 1 << 60, Blocked: true, Store: "s", Used: 3, Refused: 4}
}

func limitPB(kind leafpb.LimitKind) *leafpb.Limit {
	return &leafpb.Limit{Kind: kind, Name: "n", Rate: 1, Quota: 1 << 60, Blocked: true, Store: "s", Used: 3, Refused: 4}
}

var fullTraffic = admin.NodeTraffic{
	Unauthenticated: 1, Blocked: 2, Rate: 3, Quota: 4,
	Segment: admin.WaitingRoom{Waiting: 5, Limit: 6, Shed: 7}, Snowflake: admin.WaitingRoom{Waiting: 8, Limit: 9, Shed: 10},
}

var fullTrafficPB = &leafpb.NodeTraffic{
	Unauthenticated: 1, Blocked: 2, Rate: 3, Quota: 4,
	Segment: &leafpb.WaitingRoom{Waiting: 5, Limit: 6, Shed: 7}, Snowflake: &leafpb.WaitingRoom{Waiting: 8, Limit: 9, Shed: 10},
}

var fullLimits = admin.Limits{
	Limits: []admin.Limit{limitOf(admin.LimitOfTag), limitOf(admin.LimitOfClient), {Kind: "new"}},
	Node:   &fullTraffic,
}

var fullLimitsPB = &leafpb.ListLimitsResponse{Limits: []*leafpb.Limit{limitPB(1), limitPB(2), {}}, Node: fullTrafficPB}

var fullNode = admin.Node{ID: "i", Zone: "z", Weight: 1000, HTTP: "h", GRPC: "g", RESP: "r", Own: true}

var fullNodePB = &leafpb.Node{Id: "i", Zone: "z", Weight: 1000, Http: "h", Grpc: "g", Resp: "r", Own: true}

var fullNodes = admin.Nodes{Directory: "d", Nodes: []admin.Node{fullNode, {ID: "j"}}}

var fullNodesPB = &leafpb.ListNodesResponse{Directory: "d", Nodes: []*leafpb.Node{fullNodePB, {Id: "j"}}}

func workerOf(number int64, state string) admin.Worker {
	return admin.Worker{Number: number, Address: "a", State: state, Own: true, Floor: 2, Bound: 3, Released: true}
}

func workerPB(number int64, state leafpb.WorkerState) *leafpb.Worker {
	return &leafpb.Worker{Number: number, Address: "a", State: state, Own: true, FloorMs: 2, BoundMs: 3, Released: true}
}

var fullWorkers = admin.Workers{
	Registry: "etcd", Kind: "leased", Namespace: "ns", Layout: "l", Now: 1, Last: 9,
	Workers: []admin.Worker{
		workerOf(0, admin.WorkerRunning), workerOf(1, admin.WorkerHeld), workerOf(2, admin.WorkerExpired),
		workerOf(3, admin.WorkerReleased), workerOf(4, "new"),
	},
}

var fullWorkersPB = &leafpb.ListWorkersResponse{
	Registry: "etcd", Kind: "leased", Namespace: "ns", Layout: "l", NowMs: 1, Last: 9,
	Workers: []*leafpb.Worker{workerPB(0, 1), workerPB(1, 2), workerPB(2, 3), workerPB(3, 4), workerPB(4, 0)},
}

// TestAdminLeavesNothingOut: a method or a field that package admin gets must get one
// here. That both have the same values is what TestAdmin sees.
func TestAdminLeavesNothingOut(t *testing.T) {
	issuing := []string{"Next", "NextSnowflake"} // LeafService has them
	backend := reflect.TypeFor[admin.NodeBackend]()
	if want, got := backend.NumMethod()-len(issuing), len(leafpb.AdminService_ServiceDesc.Methods); got != want {
		t.Errorf("AdminService has %d methods, and admin.NodeBackend %d beside %v", got, want, issuing)
	}
	for _, name := range issuing {
		if _, ok := backend.MethodByName(name); !ok {
			t.Errorf("admin.NodeBackend has no %s", name)
		}
	}
	for _, tt := range []struct {
		ours  any
		proto proto.Message
		more  int // fields that have no other side
	}{
		{fullInfo, fullInfoPB, 0},
		{fullTag, fullTagPB, 0},
		{fullPlan, fullPlanPB, 0},
		{fullPlan.Nodes[0], fullPlanPB.GetNodes()[0], 0},
		{fullNewTag, fullCreatePB, 0},
		{fullTagChange, fullUpdatePB, 1}, // the tag's name
		{fullLimits, fullLimitsPB, 0},
		{limitOf(admin.LimitOfTag), limitPB(1), 0},
		{fullLimitChange, fullTagLimitPB, 1},    // the tag's name
		{fullLimitChange, fullClientLimitPB, 1}, // the client's
		{fullTraffic, fullTrafficPB, 0},
		{fullTraffic.Segment, fullTrafficPB.GetSegment(), 0},
		{fullWorkers, fullWorkersPB, 0},
		{workerOf(1, admin.WorkerHeld), workerPB(1, 2), 0},
		{fullNodes, fullNodesPB, 0},
		{fullNode, fullNodePB, 0},
	} {
		ours, fields := reflect.ValueOf(tt.ours), tt.proto.ProtoReflect().Descriptor().Fields()
		if want, got := ours.NumField()+tt.more, fields.Len(); got != want {
			t.Errorf("%T has %d fields where %s has %d", tt.ours, ours.NumField(), tt.proto.ProtoReflect().Descriptor().FullName(), got)
		}
		for i := range ours.NumField() {
			if ours.Field(i).IsZero() {
				t.Errorf("this test has %T without %s", tt.ours, ours.Type().Field(i).Name)
			}
		}
		for i := range fields.Len() {
			if f := fields.Get(i); !tt.proto.ProtoReflect().Has(f) {
				t.Errorf("this test has %T without %s", tt.proto, f.Name())
			}
		}
	}
}
