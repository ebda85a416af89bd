package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf/test/server"
)

// kinds are the servers to share.
var kinds = []struct {
	title, variable string
	debian          string // the package to install
	start           func(ctx context.Context, parent string) (*server.Instance, error)
}{
	{"MariaDB", "LEAF_TEST_MYSQL", "mariadb-server", server.StartMariaDB},
	{"PostgreSQL", "LEAF_TEST_POSTGRES", "postgresql", server.StartPostgres},
}

// servers are what runs beside the command.
type servers struct {
	report io.Writer
	folder *server.Folder // all temporary files, the command's too

	mu      sync.Mutex
	started map[string]*server.Instance // by variable
}

// prepare starts what the environment does not name. The servers that it
// returns are to be closed in any case.
func prepare(ctx context.Context, report io.Writer) (*servers, error) {
	s := &servers{report: report, started: map[string]*server.Instance{}}
	var err error
	if s.folder, err = server.NewFolder("", "run"); err != nil {
		return s, err
	}
	if err := os.Chmod(s.folder.Path(), 0o755); err != nil { // the user postgres goes through it
		return s, err
	}
	missing, err := s.start(ctx)
	if err != nil || len(missing) == 0 {
		return s, err
	}
	if !canInstall() {
		s.warn(missing)
		return s, nil
	}
	if err := install(ctx, report, missing); err != nil {
		return s, err
	}
	missing, err = s.start(ctx)
	s.warn(missing)
	return s, err
}

// start starts all kinds that do not run yet, side by side, and returns the
// packages of those that are not installed.
func (s *servers) start(ctx context.Context) (missing []string, err error) {
	var wait sync.WaitGroup
	var errs []error
	for _, k := range kinds {
		s.mu.Lock()
		_, runs := s.started[k.variable]
		s.mu.Unlock()
		if runs {
			continue
		}
		wait.Go(func() {
			d, i, err := s.find(ctx, k.variable, k.start)
			var version string
			if err == nil {
				version, err = d.Version(ctx)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			switch {
			case errors.Is(err, server.ErrMissing):
				missing = append(missing, k.debian)
			case err != nil:
				errs = append(errs, fmt.Errorf("%s: %w", k.title, err))
			case i == nil:
				fmt.Fprintf(s.report, "withservers: %s is set and used: %s (%s)\n", k.variable, d.Redacted(), version)
			default:
				fmt.Fprintf(s.report, "withservers: started %s %s on %s\n", k.title, version, d.Addr())
			}
			if i != nil {
				s.started[k.variable] = i
			}
		})
	}
	wait.Wait()
	return missing, errors.Join(errs...)
}

// find returns the server that variable names, else a new one.
func (s *servers) find(
	ctx context.Context, variable string, start func(context.Context, string) (*server.Instance, error),
) (server.Database, *server.Instance, error) {
	if text := os.Getenv(variable); text != "" {
		d, err := server.ParseDatabase(text)
		return d, nil, err
	}
	i, err := start(ctx, s.folder.Path())
	if err != nil {
		return server.Database{}, nil, err
	}
	return i.Database, i, nil
}

func (s *servers) warn(missing []string) {
	for _, name := range missing {
		fmt.Fprintf(s.report, `withservers: **********************************************************************
withservers: NOT INSTALLED: %s. The suites that need it do not run,
withservers: and fail if CI=true. On Debian: apt-get install %s
withservers: **********************************************************************
`, name, name)
	}
}

// environment returns ours and what the command needs to know. Its temporary
// files lie in a folder that is removed even if it was killed.
func (s *servers) environment() []string {
	env := append(os.Environ(), "TMPDIR="+s.folder.Path())
	for variable, i := range s.started {
		env = append(env, variable+"="+i.URL())
	}
	return env
}

// close stops the servers and removes all folders. Processes that the command
// has left may be about to die and still write; so it tries for a while.
func (s *servers) close() {
	for _, i := range s.started {
		if err := i.Close(); err != nil {
			fmt.Fprintf(s.report, "withservers: %v\n", err)
		}
	}
	if s.folder == nil {
		return
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for tries := 100; ; tries-- {
		err := s.folder.Remove()
		if err == nil {
			return
		}
		if tries == 0 {
			fmt.Fprintf(s.report, "withservers: %v\n", err)
			return
		}
		<-tick.C
	}
}
