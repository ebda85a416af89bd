package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/leaf-idgen/leaf/bench/internal/side"
	"github.com/leaf-idgen/leaf/internal/test/port"
	"github.com/leaf-idgen/leaf/internal/test/program"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// stage is what nodes stand on: a MariaDB with rows, a slow line to it, and the program.
type stage struct {
	folder   *server.Folder
	database *server.Instance
	line     *proxy.Proxy
	program  string
	version  string // of MariaDB
}

// newStage builds the program if opt names none, and starts the rest. The caller calls
// close.
func newStage(ctx context.Context, opt options) (_ *stage, err error) {
	s := &stage{program: opt.program}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.folder, err = server.NewFolder("", "leaf-overload"); err != nil {
		return nil, err
	}
	if s.program == "" {
		s.program = filepath.Join(s.folder.Path(), "leaf")
		if err := program.Build(ctx, s.program); err != nil {
			return nil, err
		}
	}
	if s.database, err = server.StartMariaDB(ctx, s.folder.Path()); err != nil {
		return nil, err
	}
	if s.version, err = s.database.Version(ctx); err != nil {
		return nil, err
	}
	if err := s.steady(ctx); err != nil {
		return nil, err
	}
	if s.line, err = proxy.Start(s.database.Addr()); err != nil {
		return nil, err
	}
	s.line.Delay(opt.delay)
	return s, nil
}

// steady keeps MariaDB from waiting for the disk at each commit. On a shared machine that
// makes its capacity another one from second to second; the line alone is to set it.
func (s *stage) steady(ctx context.Context) (err error) {
	pool, err := s.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	_, err = pool.ExecContext(ctx, "SET GLOBAL innodb_flush_log_at_trx_commit = 0")
	return err
}

// open returns connections past the line.
func (s *stage) open() (*sql.DB, error) {
	dsn, err := s.database.DSN()
	if err != nil {
		return nil, err
	}
	return sql.Open("mysql", dsn) // the driver of internal/test/server
}

func (s *stage) close() error {
	var errs []error
	if s.line != nil {
		s.line.Close()
	}
	if s.database != nil {
		errs = append(errs, s.database.Close())
	}
	if s.folder != nil {
		errs = append(errs, s.folder.Remove())
	}
	return errors.Join(errs...)
}

// tool runs a command; what it says is in the error only.
func tool(ctx context.Context, name string, arg ...string) error {
	if out, err := exec.CommandContext(ctx, name, arg...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), arg[0], err, out)
	}
	return nil
}

// prepare makes the tables, and a row for each of tags with that step.
func (s *stage) prepare(ctx context.Context, tags []string, step int) (err error) {
	if err := tool(ctx, s.program, "schema", "apply", "--store", s.database.URL()); err != nil {
		return err
	}
	pool, err := s.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	var rows strings.Builder
	for i, tag := range tags {
		if i > 0 {
			rows.WriteByte(',')
		}
		fmt.Fprintf(&rows, "('%s', 1, %d)", tag, step)
	}
	_, err = pool.ExecContext(ctx, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES "+rows.String())
	return err
}

// node is `leaf serve` with a folder of its own.
type node struct {
	*side.Process
	output *os.File
}

// startNode runs a node that serves one protocol, which listens at Addr, with its
// database behind the slow line. name must not have been used before. It returns when the
// node is ready. The caller calls stop.
func (s *stage) startNode(ctx context.Context, name string, p protocol) (_ *node, err error) {
	addrs := map[string]string{}
	command := []string{
		s.program, "serve", "--data-dir", filepath.Join(s.folder.Path(), name),
		"--store", s.database.Via(s.line.Addr()).URL(),
		"--no-snowflake-enable", "--admin-addr", "off", "--log-level", "warn",
		"--segment-fixed-step",       // each ID of a row with step 1 costs a load
		"--no-segment-return-unused", // ten thousand tags over a slow line are not the point
	}
	for _, other := range protocols {
		free, err := port.Claim(ctx)
		if err != nil {
			return nil, err
		}
		defer free.Release() // once the node listens
		addrs[other.name] = free.Addr()
		command = append(command, other.flag, addrs[other.name])
	}
	n := &node{}
	if n.output, err = os.Create(filepath.Join(s.folder.Path(), name+".log")); err != nil {
		return nil, err
	}
	n.Process, err = side.Daemon{
		Name: "leaf for " + name, Addr: addrs[p.name], Command: command, Output: n.output,
		Ready: func(ctx context.Context) error { return ready(ctx, addrs["http"]) },
	}.Start(ctx)
	if err != nil {
		return nil, errors.Join(err, fmt.Errorf("it says: %s", n.says()), n.output.Close())
	}
	return n, nil
}

func (n *node) stop() error { return errors.Join(n.Stop(), n.output.Close()) }

// says returns the beginning of what the node printed.
func (n *node) says() string {
	text := make([]byte, 2000)
	read, _ := n.output.ReadAt(text, 0)
	return strings.TrimSpace(string(text[:read]))
}

// ready asks a node whether it is.
func ready(ctx context.Context, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %s", resp.Status)
	}
	return nil
}
