package etcd_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/leaf-idgen/leaf/driver/etcd"
)

// slowLogIn is an etcd without keys that takes its time for each log-in, and more of it than for a connection.
type slowLogIn struct {
	etcdserverpb.UnimplementedAuthServer
	etcdserverpb.UnimplementedKVServer

	takes time.Duration
}

func (s slowLogIn) Authenticate(ctx context.Context, _ *etcdserverpb.AuthenticateRequest) (*etcdserverpb.AuthenticateResponse, error) {
	select {
	case <-time.After(s.takes):
		return &etcdserverpb.AuthenticateResponse{Header: &etcdserverpb.ResponseHeader{}, Token: "t"}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (slowLogIn) Txn(_ context.Context, r *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	none := &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: &etcdserverpb.RangeResponse{}}}
	return &etcdserverpb.TxnResponse{
		Header: &etcdserverpb.ResponseHeader{}, Succeeded: true, Responses: slices.Repeat([]*etcdserverpb.ResponseOp{none}, len(r.Success)),
	}, nil
}

// TestSlowLogIn: an etcd that is busy, or that all nodes log in to at once, lets them in all the same.
func TestSlowLogIn(t *testing.T) {
	t.Parallel()
	const connection = 300 * time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	busy := slowLogIn{takes: connection + connection/3}
	s := grpc.NewServer()
	etcdserverpb.RegisterAuthServer(s, busy)
	etcdserverpb.RegisterKVServer(s, busy)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	records, err := etcd.NewRecords(etcd.Config{
		Endpoints: []string{listener.Addr().String()}, Prefix: "/leaf", Username: "leaf", Password: "secret", DialTimeout: connection,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	eventually(t, "List", func(c context.Context) error { _, err := records.List(c); return err })
}
