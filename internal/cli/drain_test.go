package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
)

// restarted is a node whose supervisor starts it again the moment it has ended, before
// anybody can see that it was away.
type restarted struct {
	again atomic.Bool
	next  manage.Info
}

func (r *restarted) Do(_ context.Context, request any) (any, error) {
	switch request.(type) {
	case manage.GetInfo:
		if r.again.Load() {
			return r.next, nil
		}
		return manage.Info{PID: 7, Started: time.Unix(1000, 0), Stage: "serving"}, nil
	case manage.Drain:
		r.again.Store(true)
		return manage.None{}, nil
	}
	return nil, fmt.Errorf("unexpected request %T", request)
}

// TestDrainOfANodeThatIsStartedAgain: the command ends with the node that it drained, and
// does not wait for the end of the next one. In a container both have the same process
// number.
func TestDrainOfANodeThatIsStartedAgain(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]manage.Info{
		"another process":         {PID: 8, Started: time.Unix(1000, 0), Stage: "serving"},
		"with the same number":    {PID: 7, Started: time.Unix(1001, 0), Stage: "serving"},
		"that is drained as well": {PID: 8, Started: time.Unix(1001, 0), Stage: "ending connections"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := dataDir(t)
			ln, err := admin.Listen(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			s := admin.NewServer(&restarted{next: next}, admin.Config{Logger: slog.New(slog.DiscardHandler)})
			served := make(chan error, 1)
			go func() { served <- s.Serve(ln) }()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var out, errs bytes.Buffer
			code := cli.Run(ctx, cli.Process{Args: []string{"drain", "--data-dir", dir}, Stdout: &out, Stderr: &errs})
			if want := fmt.Sprintf("stopped; process %d has taken its place\n", next.PID); code != 0 || !strings.HasSuffix(out.String(), want) || strings.Contains(out.String(), next.Stage) {
				t.Errorf("exit code %d, want %q:\n%s%s", code, want, out.String(), errs.String())
			}
			if err := s.Stop(context.Background()); err != nil {
				t.Error(err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// silent is a node that stops, and whose machine is gone 45 s later.
type silent struct{ began time.Time }

func (s silent) Do(context.Context, any) (any, error) {
	if time.Since(s.began) < 45*time.Second {
		return manage.Info{PID: 7, Stage: "returning unused IDs"}, nil
	}
	return nil, fmt.Errorf("%w: i/o timeout", leaf.ErrNotReady)
}

// TestDrainOfAMachineThatIsGone: the command ends although no answer says that the node has ended.
func TestDrainOfAMachineThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := cli.FollowDrain(ctx, cli.Process{Stdout: &out}, silent{began}, manage.Info{PID: 7, Stage: "serving"})
		if took := time.Since(began); !errors.Is(err, leaf.ErrNotReady) || took < 90*time.Second || took > 2*time.Minute {
			t.Errorf("%v after %v: %s", err, took, out.String())
		}
	})
}
