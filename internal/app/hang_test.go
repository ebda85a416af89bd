package app_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/app"
)

// TestStopBesideADiskThatHangs: a look at the node's files does not return. A stop ends all the
// same, soon after shutdown-timeout, and says so. The data directory stays locked, because what
// hangs may still work on it.
func TestStopBesideADiskThatHangs(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Segment.LoadTimeout, c.ShutdownTimeout = 500*time.Millisecond, 500*time.Millisecond
	a, err := app.New(c, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hangs, free := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(hangs) })
	a.LookAt(func() error {
		first()
		<-free
		return nil
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-hangs
	stopped := make(chan error, 1)
	go func() { stopped <- a.Stop(context.Background()) }()
	select {
	case err := <-stopped:
		if err == nil || !strings.Contains(err.Error(), "has not ended") || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stop: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the stop has not ended after 20 s, with shutdown-timeout=500ms")
		close(free)
		t.Log("it has ended with", <-stopped)
		return
	}
	if _, err := datadir.Open(c.DataDir); err == nil {
		t.Error("the data directory is not locked any more")
	}
	close(free)
}
