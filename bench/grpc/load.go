package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf/bench/latency"
	"github.com/leaf-idgen/leaf/bench/side"
	"github.com/leaf-idgen/leaf/leafpb"
)

// shape is a way to ask.
type shape struct {
	name    string
	workers int // callers or streams
	flight  int // requests in flight on each stream; 0: Next
}

var shapes = []shape{
	{"unary", 64, 0},
	{"ping-pong", 64, 1},
	{"in-flight", 4, 64},
}

// counts are how many IDs a request asks for.
var counts = []int32{1, 100}

// drive asks for slice and returns how long each request took. Requests that are under
// way when time is up are waited for and counted.
func drive(ctx context.Context, clients []leafpb.LeafServiceClient, s shape, count int32, slice time.Duration) (*latency.Histogram, error) {
	ctx, cancel := context.WithTimeout(ctx, slice+30*time.Second)
	defer cancel()
	until := time.Now().Add(slice)
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
	return total, failed
}

// call is one caller of Next.
func call(ctx context.Context, c leafpb.LeafServiceClient, _ int, count int32, until time.Time, h *latency.Histogram) error {
	req := &leafpb.NextRequest{Tag: side.Tag, Count: count}
	for began := time.Now(); began.Before(until); {
		resp, err := c.Next(ctx, req)
		if err != nil {
			return err
		}
		if err := check(resp.GetRanges(), count); err != nil {
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
		if err := check(resp.GetRanges(), count); err != nil {
			return err
		}
		h.Note(time.Since(began))
	}
	return nil
}

// check makes sure that what is measured is IDs.
func check(ranges []*leafpb.Range, count int32) error {
	n := int64(0)
	for _, r := range ranges {
		n += r.GetHi() - r.GetLo()
	}
	if n != int64(count) {
		return fmt.Errorf("asked for %d IDs, got %v", count, ranges)
	}
	return nil
}
