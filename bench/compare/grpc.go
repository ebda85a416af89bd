package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leaf-idgen/leaf/bench/internal/latency"
	"github.com/leaf-idgen/leaf/bench/internal/side"
	"github.com/leaf-idgen/leaf/leafpb"
)

// grpcConns are the connections, which the callers and streams share.
const grpcConns = 2

// overGRPC is asked by this process.
func overGRPC() protocol {
	p := protocol{name: "grpc", servers: []server{{name: "leaf", start: ours("grpc", "leaf")}, {name: "bare", start: ours("grpc", "bare")}}}
	for _, s := range shapes {
		for _, count := range []int32{1, 100} {
			p.loads = append(p.loads, load{
				name: fmt.Sprintf("%s, batches of %d", s.name, count),
				ask: func(ctx context.Context, r rival, slice time.Duration) (answers, error) {
					return s.drive(ctx, r.Addr, count, slice)
				},
			})
		}
	}
	return p
}

// shape is a way to ask.
type shape struct {
	name    string
	workers int // callers or streams
	flight  int // requests in flight on each stream; 0: Next
}

var shapes = []shape{
	{"64 callers", 64, 0},
	{"64 streams with 1 in flight on each", 64, 1},
	{"4 streams with 64 in flight on each", 4, 64},
}

// drive sends requests to addr until slice has passed. Then it waits for the answers to the
// requests under way, and counts them too.
func (s shape) drive(ctx context.Context, addr string, count int32, slice time.Duration) (answers, error) {
	var clients []leafpb.LeafServiceClient
	for range grpcConns {
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return answers{}, err
		}
		defer func() { _ = conn.Close() }()
		clients = append(clients, leafpb.NewLeafServiceClient(conn))
	}
	ctx, cancel := context.WithTimeout(ctx, slice+30*time.Second)
	defer cancel()
	began := time.Now()
	until := began.Add(slice)
	var (
		mu     sync.Mutex
		total  = latency.New()
		failed error
		wg     sync.WaitGroup
	)
	for i := range s.workers {
		wg.Go(func() {
			h := latency.New()
			work := call
			if s.flight > 0 {
				work = converse
			}
			err := work(ctx, clients[i%len(clients)], s.flight, count, until, h)
			mu.Lock()
			defer mu.Unlock()
			total.Add(h)
			failed = errors.Join(failed, err)
		})
	}
	wg.Wait()
	took := time.Since(began)
	if failed == nil && total.Total() == 0 {
		failed = errors.New("no request was answered")
	}
	return answers{
		total: float64(total.Total()), rate: float64(total.Total()) / took.Seconds(),
		p50: total.Quantile(0.5), p99: total.Quantile(0.99), p999: total.Quantile(0.999),
	}, failed
}

// call is one caller of Next.
func call(ctx context.Context, c leafpb.LeafServiceClient, _ int, count int32, until time.Time, h *latency.Histogram) error {
	req := &leafpb.NextRequest{Tag: side.Tag, Count: count}
	for began := time.Now(); began.Before(until); {
		resp, err := c.Next(ctx, req)
		if err != nil {
			return err
		}
		if err := checkRanges(resp.GetRanges(), count); err != nil {
			return err
		}
		now := time.Now()
		h.Note(now.Sub(began))
		began = now
	}
	return nil
}

// converse is one stream.
func converse(ctx context.Context, c leafpb.LeafServiceClient, flight int, count int32, until time.Time, h *latency.Histogram) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := c.Stream(ctx)
	if err != nil {
		return err
	}
	// When the requests in flight were sent. With the one that the receiver has taken out
	// they are flight.
	sent := make(chan time.Time, flight-1)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		defer close(sent)
		req := &leafpb.StreamRequest{Tag: side.Tag, Count: count}
		for now := time.Now(); now.Before(until); now = time.Now() {
			select {
			case sent <- now:
			case <-ctx.Done():
				return
			}
			if st.Send(req) != nil {
				return // Recv has the error
			}
		}
	})
	defer cancel()
	for began := range sent {
		resp, err := st.Recv()
		if err != nil {
			return err
		}
		if resp.GetError() != nil {
			return errors.New(resp.GetError().GetMessage())
		}
		if err := checkRanges(resp.GetRanges(), count); err != nil {
			return err
		}
		h.Note(time.Since(began))
	}
	return nil
}

// checkRanges makes sure that what is measured is IDs.
func checkRanges(ranges []*leafpb.Range, count int32) error {
	n := int64(0)
	for _, r := range ranges {
		n += r.GetHi() - r.GetLo()
	}
	if n != int64(count) {
		return fmt.Errorf("asked for %d IDs, got %v", count, ranges)
	}
	return nil
}
