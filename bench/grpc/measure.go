package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leaf-idgen/leaf/bench/side"
	"github.com/leaf-idgen/leaf/leafpb"
)

// servers in the order of the report; the first one is compared with the second.
var servers = []string{"leaf", "bare"}

// sample is one turn of one server.
type sample struct {
	server string
	shape  string
	count  int32
	round  int
	rate   float64 // requests per second
	p50    time.Duration
	p99    time.Duration
	p999   time.Duration
	cpu    float64 // microseconds of the server's CPU time per request; 0: unknown
}

// rival is a running server with connections to it.
type rival struct {
	*side.Process
	conns   []*grpc.ClientConn
	clients []leafpb.LeafServiceClient
}

func launch(ctx context.Context, self, name string, conns int) (*rival, error) {
	p, err := side.Start(ctx, name, self, "serve", name)
	if err != nil {
		return nil, err
	}
	r := &rival{Process: p}
	if err := r.connect(p.Addr, conns); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return r, nil
}

func (r *rival) connect(addr string, conns int) error {
	for range conns {
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		r.conns = append(r.conns, conn)
		r.clients = append(r.clients, leafpb.NewLeafServiceClient(conn))
	}
	return nil
}

func (r *rival) disconnect() (err error) {
	for _, conn := range r.conns {
		err = errors.Join(err, conn.Close())
	}
	return err
}

func (r *rival) stop() error { return errors.Join(r.disconnect(), r.Stop()) }

// measure gives both servers their turns, in another order in each round.
func measure(ctx context.Context, self string, opt options) (samples []sample, err error) {
	var running []*rival
	defer func() {
		for _, r := range running {
			err = errors.Join(err, r.stop())
		}
	}()
	for _, name := range servers {
		r, err := launch(ctx, self, name, opt.conns)
		if err != nil {
			return nil, err
		}
		running = append(running, r)
	}
	for round := range opt.rounds + 1 {
		slice := opt.slice
		if round == 0 {
			slice = min(slice, time.Second/2) // warm-up
		}
		for _, shape := range shapes {
			for _, count := range counts {
				for i := range running {
					r := running[(i+round)%len(running)]
					s, err := turn(ctx, r, shape, count, slice)
					if err != nil {
						return nil, fmt.Errorf("%s, %s, %d IDs: %w", r.Name, shape.name, count, err)
					}
					if round > 0 {
						s.round = round
						samples = append(samples, s)
					}
				}
			}
		}
	}
	return samples, nil
}

func turn(ctx context.Context, r *rival, s shape, count int32, slice time.Duration) (sample, error) {
	spent := r.Spending()
	began := time.Now()
	h, err := drive(ctx, r.clients, s, count, slice)
	took := time.Since(began)
	if err != nil {
		return sample{}, err
	}
	if h.Total() == 0 {
		return sample{}, errors.New("no request was answered")
	}
	return sample{
		server: r.Name, shape: s.name, count: count, rate: float64(h.Total()) / took.Seconds(), cpu: spent(float64(h.Total())),
		p50: h.Quantile(0.5), p99: h.Quantile(0.99), p999: h.Quantile(0.999),
	}, nil
}
