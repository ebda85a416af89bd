package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// sample is one turn of one server.
type sample struct {
	server   string
	pipeline int
	round    int
	rate     float64 // requests per second
	p50, p99 float64 // ms
	cpu      float64 // microseconds of the server's CPU time per request; 0: unknown
}

// warmUp is how many requests the first turn has; its rate says how many make a slice.
const warmUp = 100_000

// measure gives both servers their turns, in another order in each round.
func measure(ctx context.Context, self string, opt options) (samples []sample, err error) {
	var running []*process
	defer func() {
		for _, p := range running {
			err = errors.Join(err, p.stop())
		}
	}()
	leaf, err := launchLeaf(ctx, self)
	if err != nil {
		return nil, err
	}
	running = append(running, leaf)
	redis, err := launchRedis(ctx)
	if err != nil {
		return nil, err
	}
	running = append(running, redis)

	requests := map[string]int{}
	for round := range opt.rounds + 1 {
		for _, pipeline := range opt.pipelines {
			for i := range running {
				p := running[(i+round)%len(running)]
				turnOf := p.name + strconv.Itoa(pipeline)
				n := requests[turnOf]
				if round == 0 {
					n = warmUp
				}
				s, err := turn(ctx, p, opt.conns, pipeline, n)
				if err != nil {
					return nil, fmt.Errorf("%s with pipelines of %d: %w", p.name, pipeline, err)
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

func turn(ctx context.Context, p *process, conns, pipeline, n int) (sample, error) {
	host, port, err := net.SplitHostPort(p.addr)
	if err != nil {
		return sample{}, err
	}
	before, known := p.cpuTime()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-c", strconv.Itoa(conns), "-P", strconv.Itoa(pipeline),
		"-n", strconv.Itoa(n), "--csv", "INCR", tag)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return sample{}, fmt.Errorf("redis-benchmark: %w: %s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	s, err := parseCSV(stdout.String())
	if err != nil {
		return sample{}, fmt.Errorf("%w in the output of redis-benchmark: %s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	s.server, s.pipeline = p.name, pipeline
	if after, ok := p.cpuTime(); ok && known {
		s.cpu = (after - before) * 1e6 / float64(n)
	}
	return s, nil
}

// parseCSV reads redis-benchmark's report. It ends by itself at the first error reply,
// so a report means that all were answered.
func parseCSV(out string) (s sample, err error) {
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 2 {
		return s, errors.Join(errors.New("no two rows"), err)
	}
	for column, into := range map[string]*float64{"rps": &s.rate, "p50_latency_ms": &s.p50, "p99_latency_ms": &s.p99} {
		found := false
		for i, name := range rows[0] {
			if name != column || i >= len(rows[1]) {
				continue
			}
			found = true
			if *into, err = strconv.ParseFloat(rows[1][i], 64); err != nil {
				return s, err
			}
		}
		if !found {
			return s, fmt.Errorf("no column %s", column)
		}
	}
	return s, nil
}

// cpuTime returns the CPU time that a process has used, in seconds, on Linux.
func (p *process) cpuTime() (float64, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, false
	}
	// The second field is the name in parentheses; utime and stime are the 14th and
	// 15th, in ticks of 10 ms.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	utime, err1 := strconv.ParseFloat(string(fields[11]), 64)
	stime, err2 := strconv.ParseFloat(string(fields[12]), 64)
	return (utime + stime) / 100, err1 == nil && err2 == nil
}
