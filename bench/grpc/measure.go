package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

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

// process is a running server with its connections.
type process struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.Closer
	conns   []*grpc.ClientConn
	clients []leafpb.LeafServiceClient
}

func launch(ctx context.Context, self, name string, conns int) (_ *process, err error) {
	cmd := exec.CommandContext(ctx, self, "serve", name)
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
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s prints no address: %w", name, err), p.stop())
	}
	if err := p.connect(strings.TrimSpace(line), conns); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *process) connect(addr string, conns int) error {
	for range conns {
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		p.conns = append(p.conns, conn)
		p.clients = append(p.clients, leafpb.NewLeafServiceClient(conn))
	}
	return nil
}

func (p *process) stop() (err error) {
	for _, conn := range p.conns {
		err = errors.Join(err, conn.Close())
	}
	return errors.Join(err, p.stdin.Close(), p.cmd.Wait())
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

// measure gives both servers their turns, in another order in each round.
func measure(ctx context.Context, self string, opt options) (samples []sample, err error) {
	var running []*process
	defer func() {
		for _, p := range running {
			err = errors.Join(err, p.stop())
		}
	}()
	for _, name := range servers {
		p, err := launch(ctx, self, name, opt.conns)
		if err != nil {
			return nil, err
		}
		running = append(running, p)
	}
	for round := range opt.rounds + 1 {
		slice := opt.slice
		if round == 0 {
			slice = min(slice, time.Second/2) // warm-up
		}
		for _, shape := range shapes {
			for _, count := range counts {
				for i := range running {
					p := running[(i+round)%len(running)]
					s, err := turn(ctx, p, shape, count, slice)
					if err != nil {
						return nil, fmt.Errorf("%s, %s, %d IDs: %w", p.name, shape.name, count, err)
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

func turn(ctx context.Context, p *process, s shape, count int32, slice time.Duration) (sample, error) {
	before, known := p.cpuTime()
	began := time.Now()
	h, err := drive(ctx, p.clients, s, count, slice)
	took := time.Since(began)
	if err != nil {
		return sample{}, err
	}
	if h.total == 0 {
		return sample{}, errors.New("no request was answered")
	}
	got := sample{
		server: p.name, shape: s.name, count: count, rate: float64(h.total) / took.Seconds(),
		p50: h.quantile(0.5), p99: h.quantile(0.99), p999: h.quantile(0.999),
	}
	if after, ok := p.cpuTime(); ok && known {
		got.cpu = (after - before) * 1e6 / float64(h.total)
	}
	return got, nil
}
