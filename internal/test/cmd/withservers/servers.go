package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// servers are what runs beside the command.
type servers struct {
	report io.Writer
	kinds  []kind
	folder *server.Folder // all temporary files, the command's too

	mu      sync.Mutex
	started map[string]running // by variable
}

// prepare starts what the environment does not name. The servers that it
// returns are to be closed in any case.
func prepare(ctx context.Context, report io.Writer, o options) (*servers, error) {
	s := &servers{report: report, started: map[string]running{}}
	var err error
	if s.kinds, err = o.kinds(ctx, report); err != nil {
		return s, err
	}
	if s.folder, err = server.NewFolder("", "run"); err != nil {
		return s, err
	}
	if err := os.Chmod(s.folder.Path(), 0o755); err != nil { // the user postgres goes through it
		return s, err
	}
	missing, err := s.start(ctx)
	missing = append(missing, missingPrograms(ctx)...)
	if err != nil || len(missing) == 0 {
		return s, err
	}
	if !canInstall() {
		s.warn(missing)
		return s, nil
	}
	var packages []string
	for _, k := range missing {
		packages = append(packages, k.debian...)
	}
	if len(packages) == 0 {
		s.warn(missing)
		return s, nil
	}
	if err := install(ctx, report, packages); err != nil {
		return s, err
	}
	missing, err = s.start(ctx)
	s.warn(append(missing, missingPrograms(ctx)...))
	return s, err
}

// start starts all kinds that do not run yet, side by side, and returns those
// that are not installed.
func (s *servers) start(ctx context.Context) (missing []kind, err error) {
	var wait sync.WaitGroup
	var errs []error
	for _, k := range s.kinds {
		s.mu.Lock()
		_, runs := s.started[k.variable]
		s.mu.Unlock()
		if runs {
			continue
		}
		wait.Go(func() {
			text, own, err := s.find(ctx, k)
			var shown, version string
			if err == nil {
				shown, version, err = k.ask(ctx, text)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			switch {
			case errors.Is(err, server.ErrMissing):
				missing = append(missing, k)
			case err != nil:
				errs = append(errs, fmt.Errorf("%s: %w", k.title, err))
			case own == nil:
				fmt.Fprintf(s.report, "withservers: %s is set and used: %s (%s)\n", k.variable, shown, version)
			default:
				fmt.Fprintf(s.report, "withservers: started %s %s: %s\n", k.title, version, shown)
			}
			if own != nil {
				s.started[k.variable] = running{text, own}
			}
		})
	}
	wait.Wait()
	return missing, errors.Join(errs...)
}

// find returns the server that the environment names, else a new one.
func (s *servers) find(ctx context.Context, k kind) (text string, own io.Closer, err error) {
	if text := os.Getenv(k.variable); text != "" {
		return text, nil, nil
	}
	return k.start(ctx, s.folder.Path())
}

func (s *servers) warn(missing []kind) {
	for _, k := range missing {
		fmt.Fprintf(s.report, `withservers: **********************************************************************
withservers: NOT INSTALLED: %s. The suites that need it do not run,
withservers: and fail if CI=true. On Debian: apt-get install %s
withservers: **********************************************************************
`, k.title, strings.Join(k.debian, " "))
	}
}

// environment returns ours and what the command needs to know. Its temporary
// files lie in a folder that is removed even if it was killed.
func (s *servers) environment() []string {
	env := append(os.Environ(), "TMPDIR="+s.folder.Path(), asked+"=asked")
	for variable, r := range s.started {
		env = append(env, variable+"="+r.text)
	}
	return env
}

// close stops the servers and removes all folders. Processes that the command
// has left may be about to die and still write; so it tries for a while.
func (s *servers) close() {
	for _, r := range s.started {
		if err := r.Close(); err != nil {
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
