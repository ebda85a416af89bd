package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/bench/internal/side"
)

// overHTTP is asked by wrk.
func overHTTP(peers []server) protocol {
	p := protocol{
		name:  "http",
		needs: map[string]string{"wrk": "wrk"},
		servers: append([]server{
			{name: "leaf", start: ours("http", "leaf")},
			{name: "bare-fast", start: ours("http", "bare-fast")},
			{name: "bare-net", start: ours("http", "bare-net")},
			{name: "leaf-net", start: ours("http", "leaf"), header: "X-Unknown: 1"},
		}, peers...),
	}
	for _, conns := range []int{16, 64} {
		p.loads = append(p.loads, load{
			name:    fmt.Sprintf("%d connections", conns),
			targets: map[string]float64{"bare-net": 1.4, "bare-fast": 0.9},
			ask: func(ctx context.Context, r rival, slice time.Duration) (answers, error) {
				return wrk(ctx, r, conns, slice)
			},
		})
	}
	return p
}

func wrk(ctx context.Context, r rival, conns int, slice time.Duration) (answers, error) {
	url := address(r.Addr)
	if err := checkHTTP(ctx, url); err != nil {
		return answers{}, err
	}
	script, err := tailScript()
	if err != nil {
		return answers{}, err
	}
	defer func() { _ = os.Remove(script) }()
	args := []string{"-t", "1", "-c", strconv.Itoa(conns), "-d", fmt.Sprintf("%ds", int(slice.Seconds())), "--latency", "-s", script}
	if r.header != "" {
		args = append(args, "-H", r.header)
	}
	out, err := exec.CommandContext(ctx, "wrk", append(args, url)...).CombinedOutput()
	if err != nil {
		return answers{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	a, err := parseWrk(string(out))
	if err != nil {
		return answers{}, fmt.Errorf("%w in the output of wrk: %s", err, out)
	}
	return a, nil
}

func address(server string) string { return "http://" + server + "/api/segment/get/" + side.Tag }

// checkHTTP makes sure that what is measured is an ID.
func checkHTTP(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if _, err := strconv.ParseInt(string(body), 10, 64); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d %q, and no ID", url, resp.StatusCode, body)
	}
	return nil
}

// tailScript makes wrk print p99.9, too, once the load is over.
func tailScript() (path string, err error) {
	f, err := os.CreateTemp("", "leaf-bench-*.lua")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString("function done(_, latency) io.write(string.format('99.9%% %dus\\n', latency:percentile(99.9))) end\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

var (
	wrkRate     = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	wrkRequests = regexp.MustCompile(`(\d+) requests in`)
	wrkP50      = regexp.MustCompile(`\n\s+50%\s+(\S+)`)
	wrkP99      = regexp.MustCompile(`\n\s+99%\s+(\S+)`)
	wrkP999     = regexp.MustCompile(`\n99\.9% (\S+)`)
	wrkTrouble  = regexp.MustCompile(`(?m)^\s*(Non-2xx.*|Socket errors:.*)$`)
)

// parseWrk reads wrk's report.
func parseWrk(out string) (a answers, err error) {
	if m := wrkTrouble.FindString(out); m != "" {
		return a, fmt.Errorf("failed requests (%s)", strings.TrimSpace(m))
	}
	for _, figure := range []struct {
		line *regexp.Regexp
		into *float64
	}{{wrkRate, &a.rate}, {wrkRequests, &a.total}} {
		if err := find(out, figure.line, func(text string) (err error) {
			*figure.into, err = strconv.ParseFloat(text, 64)
			return err
		}); err != nil {
			return a, err
		}
	}
	for _, latency := range []struct {
		line *regexp.Regexp
		into *time.Duration
	}{{wrkP50, &a.p50}, {wrkP99, &a.p99}, {wrkP999, &a.p999}} {
		if err := find(out, latency.line, func(text string) (err error) {
			*latency.into, err = time.ParseDuration(text)
			return err
		}); err != nil {
			return a, err
		}
	}
	return a, nil
}

// find gives what a line of a report says to parse.
func find(out string, line *regexp.Regexp, parse func(text string) error) error {
	m := line.FindStringSubmatch(out)
	if m == nil {
		return fmt.Errorf("no %v", line)
	}
	return parse(m[1])
}
