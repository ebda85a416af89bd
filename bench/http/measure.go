package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
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
	cpu      float64       // microseconds of the server's CPU time per request; 0: unknown
}

// process is a running contender.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	url    string
	header string
}

func launch(ctx context.Context, c contender) (*process, error) {
	cmd := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	p := &process{cmd: cmd, stdin: stdin, header: c.header}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s prints no address: %w", c.name, p.stop())
	}
	p.url = "http://" + strings.TrimSpace(line) + "/api/segment/get/" + tag
	if err := check(ctx, p.url); err != nil {
		_ = p.stop()
		return nil, fmt.Errorf("check %s: %w", c.name, err)
	}
	return p, nil
}

func (p *process) stop() error {
	_ = p.stdin.Close()
	return p.cmd.Wait()
}

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

// measure gives every server its turns, in another order in each round.
func measure(ctx context.Context, contenders []contender, opt options) ([]sample, error) {
	var running []*process
	defer func() {
		for _, p := range running {
			_ = p.stop()
		}
	}()
	for _, c := range contenders {
		p, err := launch(ctx, c)
		if err != nil {
			return nil, err
		}
		running = append(running, p)
	}
	var samples []sample
	for round := range opt.rounds + 1 {
		for _, conns := range opt.conns {
			for i := range contenders {
				n := (i + round) % len(contenders)
				slice := opt.slice
				if round == 0 {
					slice = time.Second // warm-up
				}
				s, err := turn(ctx, running[n], conns, opt.threads, slice)
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

func turn(ctx context.Context, p *process, conns, threads int, slice time.Duration) (sample, error) {
	before, known := p.cpuTime()
	args := []string{"-t", strconv.Itoa(threads), "-c", strconv.Itoa(conns), "-d", fmt.Sprintf("%ds", int(slice.Seconds())), "--latency"}
	if p.header != "" {
		args = append(args, "-H", p.header)
	}
	cmd := exec.CommandContext(ctx, "wrk", append(args, p.url)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return sample{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	s, requests, err := parseWrk(string(out))
	if err != nil {
		return sample{}, fmt.Errorf("%w in the output of wrk: %s", err, out)
	}
	s.conns = conns
	if after, ok := p.cpuTime(); ok && known {
		s.cpu = (after - before) * 1e6 / requests
	}
	return s, nil
}

var (
	wrkRate     = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	wrkRequests = regexp.MustCompile(`(\d+) requests in`)
	wrkP50      = regexp.MustCompile(`\n\s+50%\s+(\S+)`)
	wrkP99      = regexp.MustCompile(`\n\s+99%\s+(\S+)`)
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
	rate, count, p50, p99 := text(wrkRate), text(wrkRequests), text(wrkP50), text(wrkP99)
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
	s.p99, err = time.ParseDuration(p99)
	return s, requests, err
}
