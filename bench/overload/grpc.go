package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf/leafpb"
)

// grpcConns is how many connections the lines share. A node lets 256 calls be under way
// on each, and a client waits beyond that, which is not what is measured here.
const grpcConns = 16

func connectGRPC(addr string) (dial func() line, disconnect func(), err error) {
	conns := make([]*grpc.ClientConn, 0, grpcConns)
	disconnect = func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}
	for range grpcConns {
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			disconnect()
			return nil, nil, err
		}
		conns = append(conns, conn)
	}
	var dialed atomic.Int64
	dial = func() line {
		return grpcLine{leafpb.NewLeafServiceClient(conns[dialed.Add(1)%grpcConns])}
	}
	return dial, disconnect, nil
}

// grpcLine asks by Next, one call at a time.
type grpcLine struct{ client leafpb.LeafServiceClient }

func (l grpcLine) ask(tag string, deadline time.Time) reply {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	resp, err := l.client.Next(ctx, &leafpb.NextRequest{Tag: tag, Count: 1})
	if err == nil {
		if r := resp.GetRanges(); len(r) != 1 || r[0].GetHi()-r[0].GetLo() != 1 {
			return reply{what: broken, text: fmt.Sprintf("asked for 1 ID, got %v", r)}
		}
		return reply{what: issued, id: resp.GetRanges()[0].GetLo()}
	}
	s := status.Convert(err)
	switch s.Code() {
	case codes.DeadlineExceeded:
		return reply{what: late}
	case codes.Unavailable:
		r := reply{what: broken, text: err.Error()} // the connection said so, not the node
		for _, d := range s.Details() {
			switch d := d.(type) {
			case *errdetails.ErrorInfo:
				r = reply{what: failed, text: s.Message()}
			case *errdetails.RetryInfo:
				return reply{what: rejected, hint: d.GetRetryDelay().AsDuration()}
			}
		}
		return r
	}
	return reply{what: broken, text: err.Error()}
}

func (l grpcLine) close() {}
