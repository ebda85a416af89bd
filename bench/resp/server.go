package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/server/respd"
)

const tag = "bench"

// serve runs leaf until stdin ends, so that it does not outlive its parent. It is the
// server as users get it, on a store that costs nothing. The step is large: a load per
// million requests is not what is measured here.
func serve(stdout io.Writer, stdin io.Reader) (err error) {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "leaf-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	dir, err := datadir.Open(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	store := memory.New()
	if err := store.Create(ctx, segment.NewRow{Tag: tag, Start: 1, Step: segment.MaxStep}); err != nil {
		return err
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: store}}, nil)
	if err != nil {
		return err
	}
	engine, err := segment.New(router, dir, segment.Config{})
	if err != nil {
		return err
	}
	if err := engine.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()

	s, err := respd.New("127.0.0.1:0", respd.Config{Access: leaf.Anyone(engine, nil)})
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	fmt.Fprintln(stdout, s.Addr())
	_, _ = io.Copy(io.Discard, stdin)
	ending, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return errors.Join(s.Shutdown(ending), <-served)
}

// process is a running server.
type process struct {
	name string
	cmd  *exec.Cmd
	stop func() error
	addr string
}

// launchLeaf starts this program again.
func launchLeaf(ctx context.Context, self string) (*process, error) {
	cmd := exec.CommandContext(ctx, self, "serve")
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
		return nil, fmt.Errorf("start leaf: %w", err)
	}
	p := &process{name: "leaf", cmd: cmd, stop: func() error { _ = stdin.Close(); return cmd.Wait() }}
	if _, err := fmt.Fscanln(stdout, &p.addr); err != nil {
		return nil, fmt.Errorf("leaf prints no address: %w", errors.Join(err, p.stop()))
	}
	return p, check(ctx, p)
}

// launchRedis starts a redis-server that writes nothing.
func launchRedis(ctx context.Context) (*process, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := ln.Addr().(*net.TCPAddr).Port
	if err := ln.Close(); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", os.TempDir())
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	p := &process{name: "redis", cmd: cmd, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	p.stop = func() error {
		_ = cmd.Process.Signal(os.Interrupt)
		return cmd.Wait()
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 250 {
		if err = check(ctx, p); err == nil {
			return p, nil
		}
		<-tick.C
	}
	return nil, errors.Join(err, p.stop())
}

// check makes sure that what is measured is an ID.
func check(ctx context.Context, p *process) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", p.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "INCR "+tag+"\r\n"); err != nil {
		return err
	}
	var id int64
	if _, err := fmt.Fscanf(conn, ":%d\r\n", &id); err != nil {
		return fmt.Errorf("%s answers no ID: %w", p.name, err)
	}
	return nil
}
