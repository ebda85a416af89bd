package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// load is one run of leaf bench.
type load struct {
	name      string
	rate      float64 // requests per second; 0: as fast as possible
	clients   int
	count     int
	tags      []string
	snowflake bool
	length    time.Duration
	logs      string // folder
}

// result is what leaf bench reports.
type result struct {
	name     string
	PerSec   float64 `json:"requests_per_second"`
	Requests int64   `json:"requests,string"`
	IDs      int64   `json:"ids,string"`
	Failed   int64   `json:"failed,string"`
	NotSent  int64   `json:"not_sent,string"`
	Latency  struct {
		P50, P99, P999, Max float64
	} `json:"latency_seconds"`
	Errors []struct{ Kind, Count string } `json:"errors"`
}

func (r result) String() string {
	ms := func(s float64) string { return strconv.FormatFloat(1000*s, 'f', 2, 64) }
	return fmt.Sprintf("load %-6s %8.0f requests/s, %d IDs, %d failed %v, %d not sent; ms: p50 %s, p99 %s, p99.9 %s, max %s",
		r.name, r.PerSec, r.IDs, r.Failed, r.Errors, r.NotSent, ms(r.Latency.P50), ms(r.Latency.P99), ms(r.Latency.P999), ms(r.Latency.Max))
}

// missed says in what the loads were not those that the plan wants: such a run shows
// nothing about them.
func missed(p plan, reports []result) (what []string) {
	ids := int64(0)
	for _, r := range reports {
		ids += r.IDs
		if r.Failed > 0 {
			what = append(what, fmt.Sprintf("load %s: %d requests failed", r.name, r.Failed))
		}
		if r.NotSent*100 > r.Requests {
			what = append(what, fmt.Sprintf("load %s: %d requests were due and not sent, beside %d: the node was too slow for it", r.name, r.NotSent, r.Requests))
		}
	}
	if ids < p.ids {
		what = append(what, fmt.Sprintf("%d IDs, wanted %d", ids, p.ids))
	}
	return what
}

// bench runs the load; each progress line goes to watch.
func (l load) bench(ctx context.Context, p plan, n *node, watch func(line string)) (r result, err error) {
	args := []string{"bench", "--json", "--url", n.url, "--clients", strconv.Itoa(l.clients), "--count", strconv.Itoa(l.count), "--duration", l.length.String()}
	if l.rate > 0 {
		args = append(args, "--rate", strconv.FormatFloat(l.rate, 'f', 2, 64))
	}
	for _, tag := range l.tags {
		args = append(args, "--tag", tag)
	}
	if l.snowflake {
		args = append(args, "--snowflake")
	}
	if l.logs != "" {
		if err := os.MkdirAll(l.logs, 0o755); err != nil {
			return r, err
		}
		args = append(args, "--log", l.logs)
	}
	cmd := exec.CommandContext(ctx, p.leaf, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = lines(watch)
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("leaf %s: %w", strings.Join(args, " "), err)
	}
	r.name = l.name
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("report of leaf bench: %w", err)
	}
	return r, nil
}

// lines is a writer that passes on whole lines.
func lines(watch func(string)) io.Writer {
	r, w := io.Pipe()
	go func() {
		rest := ""
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			rest += string(buf[:n])
			for {
				line, after, ok := strings.Cut(rest, "\n")
				if !ok {
					break
				}
				if watch != nil {
					watch(line)
				}
				rest = after
			}
			if err != nil {
				return
			}
		}
	}()
	return w
}

// measure returns how many requests of one ID per second the node answers beside the
// batches.
func measure(ctx context.Context, p plan, n *node, batches float64) (float64, error) {
	const length = 30 * time.Second
	reports, err := together(ctx, p, n, nil,
		load{name: "one", clients: p.singles, count: 1, tags: []string{"orders", "users", "sevens"}, snowflake: true, length: length},
		load{name: "batch", rate: batches, clients: 4, count: 1000, tags: []string{"bulk"}, length: length})
	if err != nil {
		return 0, err
	}
	return reports[0].PerSec, nil
}

// together runs loads side by side, samples meanwhile, and returns their reports in
// order.
func together(ctx context.Context, p plan, n *node, s *samples, loads ...load) ([]result, error) {
	var wait sync.WaitGroup
	results, errs := make([]result, len(loads)), make([]error, len(loads))
	begin := time.Now()
	ended := make(chan struct{})
	if s != nil {
		wait.Go(func() { s.follow(ctx, ended, begin) })
	}
	var running sync.WaitGroup
	for i, l := range loads {
		running.Go(func() {
			results[i], errs[i] = l.bench(ctx, p, n, func(line string) {
				if s != nil && i == 0 {
					s.note(line)
				}
			})
		})
	}
	running.Wait()
	close(ended)
	wait.Wait()
	return results, errors.Join(errs...)
}

// verify runs leaf verify over all logs.
func verify(ctx context.Context, out io.Writer, p plan, folder string) error {
	begin := time.Now()
	text := fmt.Sprintf("%s verify %s/*/*", p.leaf, folder)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", text)
	cmd.Stdout = out
	err := cmd.Run()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		fmt.Fprintf(out, "verified in %v with at most %d MiB of memory (exit code %d)\n", time.Since(begin).Round(time.Second), usage.Maxrss/1024, cmd.ProcessState.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("leaf verify: %w", err)
	}
	return nil
}
