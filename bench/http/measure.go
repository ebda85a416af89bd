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

	"github.com/leaf-idgen/leaf/bench/side"
)

// contender is a server to be measured, as the command that runs it.
type contender struct {
	name    string
	command []string
	header  string // an additional field of each request
}

// sample is one turn of one server.
type sample struct {
	server   string
	conns    int
	round    int
	rate     float64       // requests per second
	p50, p99 time.Duration // of wrk, in a closed loop
	p999     time.Duration
	cpu      float64 // microseconds of the server's CPU time per request; 0: unknown
}

// rival is a running contender.
type rival struct {
	*side.Process
	url    string
	header string
}

func launch(ctx context.Context, c contender) (*rival, error) {
	p, err := side.Start(ctx, c.name, c.command...)
	if err != nil {
		return nil, err
	}
	r := &rival{Process: p, url: address(p.Addr), header: c.header}
	if err := check(ctx, r.url); err != nil {
		return nil, errors.Join(fmt.Errorf("check %s: %w", c.name, err), p.Stop())
	}
	return r, nil
}

func address(server string) string { return "http://" + server + "/api/segment/get/" + side.Tag }

// check makes sure that what is measured is an ID.
func check(ctx context.Context, url string) error {
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
		return fmt.Errorf("answers %d %q", resp.StatusCode, body)
	}
	return nil
}

// measure gives every server its turns, in another order in each round.
func measure(ctx context.Context, contenders []contender, opt options) (samples []sample, err error) {
	var running []*rival
	defer func() {
		for _, r := range running {
			err = errors.Join(err, r.Stop())
		}
	}()
	script, remove, err := tailScript()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	for _, c := range contenders {
		r, err := launch(ctx, c)
		if err != nil {
			return nil, err
		}
		running = append(running, r)
	}
	for round := range opt.rounds + 1 {
		for _, conns := range opt.conns {
			for i := range contenders {
				n := (i + round) % len(contenders)
				slice := opt.slice
				if round == 0 {
					slice = time.Second // warm-up
				}
				s, err := turn(ctx, running[n], script, conns, opt.threads, slice)
				if err != nil {
					return nil, fmt.Errorf("%s with %d connections: %w", contenders[n].name, conns, err)
				}
				if round > 0 {
					s.server, s.round = contenders[n].name, round
					samples = append(samples, s)
				}
			}
		}
	}
	return samples, nil
}

// tailScript makes wrk print p99.9, too, once the load is over.
func tailScript() (path string, remove func() error, err error) {
	f, err := os.CreateTemp("", "leaf-bench-*.lua")
	if err != nil {
		return "", nil, err
	}
	_, err = f.WriteString("function done(_, latency) io.write(string.format('99.9%% %dus\\n', latency:percentile(99.9))) end\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return "", nil, errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), func() error { return os.Remove(f.Name()) }, nil
}

func turn(ctx context.Context, r *rival, script string, conns, threads int, slice time.Duration) (sample, error) {
	spent := r.Spending()
	args := []string{"-t", strconv.Itoa(threads), "-c", strconv.Itoa(conns), "-d", fmt.Sprintf("%ds", int(slice.Seconds())), "--latency", "-s", script}
	if r.header != "" {
		args = append(args, "-H", r.header)
	}
	cmd := exec.CommandContext(ctx, "wrk", append(args, r.url)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return sample{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	s, requests, err := parseWrk(string(out))
	if err != nil {
		return sample{}, fmt.Errorf("%w in the output of wrk: %s", err, out)
	}
	s.conns, s.cpu = conns, spent(requests)
	return s, nil
}

var (
	wrkRate     = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	wrkRequests = regexp.MustCompile(`(\d+) requests in`)
	wrkP50      = regexp.MustCompile(`\n\s+50%\s+(\S+)`)
	wrkP99      = regexp.MustCompile(`\n\s+99%\s+(\S+)`)
	wrkP999     = regexp.MustCompile(`\n99\.9% (\S+)`)
	wrkTrouble  = regexp.MustCompile(`(?m)^\s*(Non-2xx.*|Socket errors:.*)$`)
)

// parseWrk reads wrk's report. A single failed request makes it an error: a
// server that refuses is fast.
func parseWrk(out string) (s sample, requests float64, err error) {
	if m := wrkTrouble.FindString(out); m != "" {
		return s, 0, fmt.Errorf("failed requests (%s)", strings.TrimSpace(m))
	}
	text := func(re *regexp.Regexp) string {
		m := re.FindStringSubmatch(out)
		if m == nil {
			err = fmt.Errorf("no %v", re)
			return ""
		}
		return m[1]
	}
	rate, count, p50, p99, p999 := text(wrkRate), text(wrkRequests), text(wrkP50), text(wrkP99), text(wrkP999)
	if err != nil {
		return s, 0, err
	}
	if s.rate, err = strconv.ParseFloat(rate, 64); err != nil {
		return s, 0, err
	}
	if requests, err = strconv.ParseFloat(count, 64); err != nil {
		return s, 0, err
	}
	if s.p50, err = time.ParseDuration(p50); err != nil {
		return s, 0, err
	}
	if s.p99, err = time.ParseDuration(p99); err != nil {
		return s, 0, err
	}
	s.p999, err = time.ParseDuration(p999)
	return s, requests, err
}
