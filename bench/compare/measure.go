package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/leaf-idgen/leaf/bench/internal/side"
)

// protocol is one comparison: servers that speak the same, and ways to ask them.
type protocol struct {
	name    string            // of -only
	needs   map[string]string // programs, and the Debian package of each
	servers []server
	loads   []load
}

// protocols are all there are, in the order of the report.
func protocols(opt options) []protocol {
	return []protocol{overHTTP(opt.peers), overRESP(), overGRPC()}
}

// server is one side of a comparison.
type server struct {
	name   string
	start  func(ctx context.Context) (*side.Process, error)
	header string // HTTP: an additional field of each request
}

// ours is a server that this program is itself.
func ours(protocol, name string) func(ctx context.Context) (*side.Process, error) {
	return func(ctx context.Context) (*side.Process, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return side.Start(ctx, name, self, "serve", protocol, name)
	}
}

// load is a way to ask.
type load struct {
	name    string
	targets map[string]float64 // of leaf's requests per second to those of the named server, at least
	ask     func(ctx context.Context, r rival, slice time.Duration) (answers, error)
}

// rival is a server that runs.
type rival struct {
	server
	*side.Process
}

// answers are what one turn brought. A turn with a failed request is an error: a server
// that refuses is fast.
type answers struct {
	total          float64       // requests
	rate           float64       // requests per second
	p50, p99, p999 time.Duration // latencies
}

// sample is one turn of one server.
type sample struct {
	answers

	load   string
	server string
	round  int
	cpu    float64 // microseconds of the server's CPU time per request; 0: unknown
}

// measure gives every server its turns, in another order in each round.
func measure(ctx context.Context, p protocol, opt options) (samples []sample, err error) {
	var running []rival
	defer func() {
		for _, r := range running {
			err = errors.Join(err, r.Stop())
		}
	}()
	for _, s := range p.servers {
		started, err := s.start(ctx)
		if err != nil {
			return nil, err
		}
		running = append(running, rival{s, started})
	}
	for round := range opt.rounds + 1 {
		slice := opt.slice
		if round == 0 {
			slice = time.Second // warm-up
		}
		for _, l := range p.loads {
			for i := range running {
				r := running[(i+round)%len(running)]
				spent := r.Spending()
				a, err := l.ask(ctx, r, slice)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", l.name, r.name, err)
				}
				if round > 0 {
					samples = append(samples, sample{a, l.name, r.name, round, spent(a.total)})
				}
			}
		}
	}
	return samples, nil
}
