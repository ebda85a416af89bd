package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
)

// The protocols of streams beside HTTP, and their ports: those of a node whose HTTP
// server is on 8080.
const (
	overGRPC = "grpc"
	overRESP = "resp"
	grpcPort = "9090"
	respPort = "6380"
)

// protocols are all of them.
var protocols = []string{"", overGRPC, overRESP}

// source is how a client asks: it returns the IDs, or why there are none. An error is
// what the program must never do.
type source interface {
	fetch(ctx context.Context) (ids []int64, outcome string, err error)
	close()
}

// sourceOf opens what a stream's protocol needs. It does not connect.
func sourceOf(n *node, s stream) (source, error) {
	host, _, err := net.SplitHostPort(n.addr)
	if err != nil {
		return nil, err
	}
	switch s.protocol {
	case overGRPC:
		return newGRPC(net.JoinHostPort(host, grpcPort), s)
	case overRESP:
		_, patient := s.limits()
		return &respSource{s, redis.NewClient(&redis.Options{
			Addr: net.JoinHostPort(host, respPort), PoolSize: 1, MaxRetries: -1, DialerRetries: 1,
			DialTimeout: patience, ReadTimeout: patient, WriteTimeout: patient, ContextTimeoutEnabled: true,
		})}, nil
	}
	return newHTTP(n, s), nil
}

// grpcSource makes calls, one at a time.
type grpcSource struct {
	conn    *grpc.ClientConn
	request *leafpb.NextRequest
}

func newGRPC(addr string, s stream) (source, error) {
	// A node that is back is asked at once, as over HTTP.
	soon := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond}, MinConnectTimeout: patience}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(soon))
	if err != nil {
		return nil, err
	}
	if name, entity, is := s.entity(); is {
		return &entityGRPC{conn, &leafpb.SequenceRequest{Sequence: name, Requests: []*leafpb.EntityRequest{{Entity: entity, Count: int32(s.count)}}}}, nil
	}
	mode := leafpb.Mode_MODE_SEGMENT
	if s.snowflake() {
		mode = leafpb.Mode_MODE_SNOWFLAKE
	}
	return &grpcSource{conn, &leafpb.NextRequest{Tag: s.key(), Count: int32(s.count), Mode: mode}}, nil
}

func (g *grpcSource) close() { _ = g.conn.Close() }

func (g *grpcSource) fetch(ctx context.Context) ([]int64, string, error) {
	answer, err := leafpb.NewLeafServiceClient(g.conn).Next(ctx, g.request)
	if err != nil {
		outcome, err := statusOutcome(err)
		return nil, outcome, err
	}
	var ids []int64
	for _, r := range answer.GetRanges() {
		for id := r.GetLo(); id < r.GetHi(); id++ {
			ids = append(ids, id)
		}
	}
	if len(ids) != int(g.request.GetCount()) {
		return nil, ok, fmt.Errorf("gRPC %v: %d IDs", g.request, len(ids))
	}
	return ids, ok, nil
}

// statusOutcome returns the node's code, or how the answer was lost.
func statusOutcome(err error) (outcome string, _ error) {
	s := status.Convert(err)
	for _, d := range s.Details() {
		if info, is := d.(*errdetails.ErrorInfo); is && info.GetDomain() == "leaf" {
			return info.GetReason(), nil
		}
	}
	switch s.Code() {
	case codes.DeadlineExceeded:
		return timeout, nil
	case codes.Unavailable, codes.Canceled:
		if strings.Contains(s.Message(), "connection refused") {
			return noListen, nil
		}
		return cut, nil
	}
	return s.Code().String(), fmt.Errorf("gRPC: an error without a code: %w", err)
}

// silent keeps the Redis client from printing every refused connection: the outcomes are
// counted.
type silent struct{}

// Printf drops a line.
func (silent) Printf(context.Context, string, ...any) {}

// respSource sends commands as a Redis client does.
type respSource struct {
	stream stream
	client *redis.Client
}

func (r *respSource) close() { _ = r.client.Close() }

func (r *respSource) fetch(ctx context.Context) (ids []int64, outcome string, err error) {
	if name, entity, is := r.stream.entity(); is {
		last, err := r.client.HIncrBy(ctx, name, entity, int64(r.stream.count)).Result()
		if err != nil {
			outcome, err := replyOutcome(err)
			return nil, outcome, err
		}
		return upTo(last, int64(r.stream.count)), ok, nil
	}
	command := "LEAF.NEXT"
	switch {
	case r.stream.snowflake():
		command = "LEAF.SNOWFLAKE"
	case r.stream.count == 1:
		id, err := r.client.Incr(ctx, r.stream.key()).Result()
		if err != nil {
			outcome, err := replyOutcome(err)
			return nil, outcome, err
		}
		return []int64{id}, ok, nil
	}
	ids, err = r.client.Do(ctx, command, r.stream.key(), "COUNT", r.stream.count).Int64Slice()
	if err != nil {
		outcome, err := replyOutcome(err)
		return nil, outcome, err
	}
	if len(ids) != r.stream.count {
		return nil, ok, fmt.Errorf("%s %s: %d IDs, asked for %d", command, r.stream.key(), len(ids), r.stream.count)
	}
	return ids, ok, nil
}

// replyOutcome returns the node's code, or how the reply was lost.
func replyOutcome(err error) (outcome string, _ error) {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return lost(err), nil
	}
	word, _, _ := strings.Cut(reply.Error(), " ")
	all := leaf.Classes()
	if i := slices.IndexFunc(all, func(c leaf.Class) bool { return c.RESP == word }); i >= 0 {
		return all[i].Code, nil
	}
	return word, fmt.Errorf("redis protocol: an error of no class: %w", err)
}
