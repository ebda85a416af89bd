package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"time"

	"github.com/leaf-idgen/leaf/bench/side"
)

// sample is one turn of one server.
type sample struct {
	server   string
	pipeline int
	round    int
	rate     float64 // requests per second
	// In ms. The last one is redis-benchmark's step of 99.902 %.
	p50, p99, p999 float64
	cpu            float64 // microseconds of the server's CPU time per request; 0: unknown
}

// warmUp is how many requests the first turn has; its rate says how many make a slice.
const warmUp = 100_000

// measure gives both servers their turns, in another order in each round.
func measure(ctx context.Context, self string, opt options) (samples []sample, err error) {
	var running []*side.Process
	defer func() {
		for _, p := range running {
			err = errors.Join(err, p.Stop())
		}
	}()
	leaf, err := side.Start(ctx, "leaf", self, "serve")
	if err != nil {
		return nil, err
	}
	running = append(running, leaf)
	if err := check(ctx, leaf.Addr); err != nil {
		return nil, fmt.Errorf("check leaf: %w", err)
	}
	redis, err := startRedis(ctx)
	if err != nil {
		return nil, err
	}
	running = append(running, redis)

	requests := map[string]int{}
	for round := range opt.rounds + 1 {
		for _, pipeline := range opt.pipelines {
			for i := range running {
				p := running[(i+round)%len(running)]
				turnOf := p.Name + strconv.Itoa(pipeline)
				n := requests[turnOf]
				if round == 0 {
					n = warmUp
				}
				s, err := turn(ctx, p, opt.conns, pipeline, n)
				if err != nil {
					return nil, fmt.Errorf("%s with pipelines of %d: %w", p.Name, pipeline, err)
				}
				requests[turnOf] = int(s.rate * opt.slice.Seconds())
				if round > 0 {
					s.round = round
					samples = append(samples, s)
				}
			}
		}
	}
	return samples, nil
}

func turn(ctx context.Context, p *side.Process, conns, pipeline, n int) (sample, error) {
	host, port, err := net.SplitHostPort(p.Addr)
	if err != nil {
		return sample{}, err
	}
	spent := p.Spending()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-c", strconv.Itoa(conns), "-P", strconv.Itoa(pipeline),
		"-n", strconv.Itoa(n), "INCR", side.Tag)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return sample{}, fmt.Errorf("redis-benchmark: %w: %s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	s, err := parseReport(stdout.String())
	if err != nil {
		return sample{}, fmt.Errorf("%w in the output of redis-benchmark: %s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	s.server, s.pipeline, s.cpu = p.Name, pipeline, spent(float64(n))
	return s, nil
}
