package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
)

// TestFewStreams: a node that allows few streams serves more tags than that at a time,
// and its health checks find room.
func TestFewStreams(t *testing.T) {
	t.Parallel()
	for _, most := range []int{2, 8} {
		for _, tags := range []int{most, most + 1, 30} {
			t.Run(fmt.Sprintf("%d streams, %d tags", most, tags), func(t *testing.T) {
				t.Parallel()
				issuer := &moments{takes: 50 * time.Millisecond}
				address, _ := startNode(t, "127.0.0.1:0", grpcd.Config{
					Access: leaf.Anyone(issuer, nil), MaxStreams: most, Logger: slog.New(slog.DiscardHandler),
				})
				c := newClient(t, client.Addresses(address))
				ctx, stop := context.WithTimeout(t.Context(), 5*time.Second) // of which two have a health check at least
				defer stop()
				var callers sync.WaitGroup
				for i := range tags {
					callers.Go(func() {
						for ctx.Err() == nil {
							mine, cancel := context.WithTimeout(t.Context(), 2*time.Second)
							if _, err := c.Next(mine, fmt.Sprint("tag ", i)); err != nil {
								t.Errorf("tag %d: %v", i, err)
							}
							cancel()
						}
					})
				}
				callers.Wait()
				if n := c.Stats().Nodes[0]; n.Failures > 0 || n.Ejections > 0 {
					t.Errorf("%+v", n)
				}
			})
		}
	}
}

// gathering is an issuer whose calls wait until so many of them are there.
type gathering struct {
	counter
	missing atomic.Int64
	all     chan struct{}
}

func newGathering(n int64) *gathering {
	g := &gathering{all: make(chan struct{})}
	g.missing.Store(n)
	return g
}

func (g *gathering) Next(ctx context.Context, tag string) (int64, error) {
	if g.missing.Add(-1) == 0 {
		close(g.all)
	}
	select {
	case <-g.all:
		return g.counter.Next(ctx, tag)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// TestOpeningIsWatched: what looks at a slow opening does not run on after it, and so not
// after Close.
func TestOpeningIsWatched(t *testing.T) {
	t.Parallel()
	end, free := client.WatchOpening()
	time.Sleep(4 * client.OpenTime) // it waits for the connection
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end()
	}()
	select {
	case <-ended:
		t.Error("the opening has ended, and what watches it runs on")
	case <-time.After(client.OpenTime):
	}
	free()
	<-ended
}

// TestSlowToken: a token that takes its time says nothing about how many streams the node
// allows. Requests of several tags are with the node at the same time.
func TestSlowToken(t *testing.T) {
	t.Parallel()
	issuer := newGathering(eachTag)
	address, _ := startNode(t, "127.0.0.1:0", grpcd.Config{Access: leaf.Anyone(issuer, nil), Logger: slog.New(slog.DiscardHandler)})
	token := func(ctx context.Context) (string, error) {
		select {
		case <-time.After(2 * client.OpenTime):
			return "token", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	c := newClient(t, client.Addresses(address), client.WithPlainToken(), client.WithTokenFunc(token))
	ofEach(t, c, 5*time.Second)
}

// eachTag is how many tags ofEach asks for.
const eachTag = 4

// ofEach takes an ID of each of some tags at the same time.
func ofEach(t *testing.T, c *client.Client, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var callers sync.WaitGroup
	for i := range eachTag {
		callers.Go(func() {
			if _, err := c.Next(ctx, fmt.Sprint("tag ", i)); err != nil {
				t.Errorf("tag %d: %v", i, err)
			}
		})
	}
	callers.Wait()
}
