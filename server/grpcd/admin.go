package grpcd

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/server/accept"
	"github.com/leaf-idgen/leaf/server/admin"
)

// Bounds of an administrator's call, those of package admin.
const (
	maxAdminBytes = 64 << 10
	adminTimeout  = 30 * time.Second
)

// NewAdmin returns leaf.v1.AdminService and reflection as a handler for the requests of
// gRPC that reach the administrator's listener (admin.Config.GRPC). It authenticates
// nobody, because that listener does, and decides nothing: it translates between gRPC
// and b. log receives internal errors, whose cause the caller does not see.
//
// grpc-go serves it through net/http, which is slower by far than its own transport and
// good enough for an administrator.
func NewAdmin(b admin.NodeBackend, log *slog.Logger) http.Handler {
	s := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxAdminBytes),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			ctx, cancel := context.WithTimeout(ctx, adminTimeout)
			defer cancel()
			return administer(ctx, req, handler, log)
		}),
	)
	leafpb.RegisterAdminServiceServer(s, &adminService{b: b})
	reflection.Register(s)
	return s
}

// administer returns the handler's answer, its error as a status.
func administer(ctx context.Context, req any, handler grpc.UnaryHandler, log *slog.Logger) (_ any, err error) {
	defer recoverStatus(log, &err)
	resp, err := handler(ctx, req)
	if err != nil {
		return nil, statusOf(log, accept.Ended(err))
	}
	if m, ok := resp.(proto.Message); ok {
		mend(m.ProtoReflect())
	}
	return resp, nil
}

// adminService is leaf.v1.AdminService. Its errors are those of package leaf.
type adminService struct {
	leafpb.UnimplementedAdminServiceServer
	b admin.NodeBackend
}

// GetInfo describes the node.
func (s *adminService) GetInfo(ctx context.Context, _ *leafpb.GetInfoRequest) (*leafpb.GetInfoResponse, error) {
	info, err := s.b.Info(ctx)
	if err != nil {
		return nil, err
	}
	return &leafpb.GetInfoResponse{
		Version:   info.Version,
		Pid:       int64(info.PID),
		StartTime: moment(info.Started),
		DataDir:   info.DataDir,
		Stores:    info.Stores,
		Http:      info.HTTP,
		Grpc:      info.GRPC,
		Resp:      info.RESP,
		Admin:     info.Admin,
		Stage:     info.Stage,
		Ready:     info.Ready,
		Reasons:   info.Reasons,
	}, nil
}

// ConfirmClock tells the node that its wall clock is right.
func (s *adminService) ConfirmClock(ctx context.Context, _ *leafpb.ConfirmClockRequest) (*leafpb.ConfirmClockResponse, error) {
	now, err := s.b.ConfirmClock(ctx)
	if err != nil {
		return nil, err
	}
	return &leafpb.ConfirmClockResponse{Time: moment(now)}, nil
}

// Drain begins to stop the node.
func (s *adminService) Drain(ctx context.Context, req *leafpb.DrainRequest) (*leafpb.DrainResponse, error) {
	delay := time.Duration(-1)
	if d := req.GetDelay(); d != nil {
		delay = d.AsDuration()
		if d.CheckValid() != nil || delay < 0 {
			return nil, leaf.BadField("delay", d, "must be 0 to 10 minutes")
		}
		if err := admin.CheckDrainDelay(delay); err != nil {
			return nil, err
		}
	}
	return &leafpb.DrainResponse{}, s.b.Drain(ctx, delay)
}

// moment returns t, nil for the zero time.
func moment(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
