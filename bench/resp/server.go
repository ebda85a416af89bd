package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/leaf-idgen/leaf/bench/side"
	"github.com/leaf-idgen/leaf/internal/server/respd"
)

// serve runs leaf until stdin ends. It is the server as users get it, on a store that
// costs nothing.
func serve(stdout io.Writer, stdin io.Reader) (err error) {
	access, stop, err := side.Engine()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	s, err := respd.New("127.0.0.1:0", respd.Config{Access: access})
	if err != nil {
		return err
	}
	return side.Serve(s, s.Addr(), stdout, stdin)
}

// startRedis starts a redis-server that writes nothing.
func startRedis(ctx context.Context) (*side.Process, error) {
	addr, err := side.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	return side.Daemon{
		Name: "redis", Addr: addr,
		Command: []string{
			"redis-server", "--port", port, "--bind", "127.0.0.1",
			"--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", os.TempDir(),
		},
		Ready: func(ctx context.Context) error { return check(ctx, addr) },
	}.Start(ctx)
}

// check makes sure that what is measured is an ID.
func check(ctx context.Context, addr string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
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
