package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/leaf-idgen/leaf/bench/internal/side"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

// respConns are the connections of redis-benchmark.
const respConns = 50

// overRESP is asked by redis-benchmark, which sends INCR.
func overRESP() protocol {
	p := protocol{
		name:    "resp",
		needs:   map[string]string{"redis-benchmark": "redis-tools", "redis-server": "redis-server"},
		servers: []server{{name: "leaf", start: ours("resp", "leaf")}, {name: "redis", start: startRedis}},
	}
	for _, l := range []struct {
		pipeline int
		target   float64
	}{{1, 0.75}, {16, 0.7}, {64, 1}} {
		last := map[string]float64{} // the rate of each server: redis-benchmark wants a number of requests, and no time
		p.loads = append(p.loads, load{
			name:    fmt.Sprintf("%d connections with %d in flight on each", respConns, l.pipeline),
			targets: map[string]float64{"redis": l.target},
			ask: func(ctx context.Context, r rival, slice time.Duration) (answers, error) {
				a, err := redisBenchmark(ctx, r, l.pipeline, max(int(last[r.name]*slice.Seconds()), 100_000))
				last[r.name] = a.rate
				return a, err
			},
		})
	}
	return p
}

// startRedis starts a redis-server that writes nothing.
func startRedis(ctx context.Context) (*side.Process, error) {
	free, err := port.Claim(ctx)
	if err != nil {
		return nil, err
	}
	defer free.Release()
	return side.Daemon{
		Name: "redis", Addr: free.Addr(),
		Command: []string{
			"redis-server", "--port", strconv.Itoa(free.Number), "--bind", "127.0.0.1",
			"--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", os.TempDir(),
		},
		Ready: func(ctx context.Context) error { return checkRESP(ctx, free.Addr()) },
	}.Start(ctx)
}

// checkRESP makes sure that what is measured is an ID.
func checkRESP(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "INCR "+side.Tag+"\r\n"); err != nil {
		return err
	}
	var id int64
	if _, err := fmt.Fscanf(conn, ":%d\r\n", &id); err != nil {
		return fmt.Errorf("the answer is no ID: %w", err)
	}
	return nil
}

func redisBenchmark(ctx context.Context, r rival, pipeline, n int) (answers, error) {
	if err := checkRESP(ctx, r.Addr); err != nil {
		return answers{}, err
	}
	host, number, err := net.SplitHostPort(r.Addr)
	if err != nil {
		return answers{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", number, "-c", strconv.Itoa(respConns), "-P", strconv.Itoa(pipeline),
		"-n", strconv.Itoa(n), "INCR", side.Tag)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return answers{}, fmt.Errorf("redis-benchmark: %w: %s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	a, err := parseRedisBenchmark(stdout.String())
	if err != nil {
		return answers{}, fmt.Errorf("%w in the output of redis-benchmark: %s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	a.total = float64(n)
	return a, nil
}

var (
	rateLine    = regexp.MustCompile(`throughput summary: ([\d.]+) requests per second`)
	summaryLine = regexp.MustCompile(`avg\s+min\s+p50\s+p95\s+p99\s+max\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s+([\d.]+)\s+[\d.]+`)
	stepLine    = regexp.MustCompile(`(?m)^([\d.]+)% <= ([\d.]+) milliseconds \(cumulative count \d+\)$`)
)

// parseRedisBenchmark reads the long report, because the short one (--csv) ends with p99.
// It ends by itself at the first error reply, so a report means that all were answered.
func parseRedisBenchmark(out string) (a answers, err error) {
	rate, summary := rateLine.FindStringSubmatch(out), summaryLine.FindStringSubmatch(out)
	if rate == nil || summary == nil {
		return a, errors.New("no throughput, or no p50 and p99")
	}
	if a.rate, err = strconv.ParseFloat(rate[1], 64); err != nil {
		return a, err
	}
	tail := ""
	for _, step := range stepLine.FindAllStringSubmatch(out, -1) {
		part, err := strconv.ParseFloat(step[1], 64)
		if err != nil {
			return a, err
		}
		if part >= 99.9 { // the first table comes in steps of 99.805, 99.902, 99.951 %
			tail = step[2]
			break
		}
	}
	if tail == "" {
		return a, errors.New("no step of 99.9 % or more")
	}
	for _, latency := range []struct {
		milliseconds string
		into         *time.Duration
	}{{summary[1], &a.p50}, {summary[2], &a.p99}, {tail, &a.p999}} {
		if *latency.into, err = time.ParseDuration(latency.milliseconds + "ms"); err != nil {
			return a, err
		}
	}
	return a, nil
}
