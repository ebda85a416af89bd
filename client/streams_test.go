package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
)

// TestFewStreams: a node that allows few streams serves more tags than that at a time,
// and its health checks find room.
func TestFewStreams(t *testing.T) {
	for _, most := range []int{2, 3, 8} {
		for _, tags := range []int{most, most + 1, 30} {
			t.Run(fmt.Sprintf("%d streams, %d tags", most, tags), func(t *testing.T) {
				t.Parallel()
				issuer := &moments{takes: 5 * time.Millisecond}
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
