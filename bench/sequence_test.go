package bench_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// entitiesOfSequence are asked for in turn.
const entitiesOfSequence = 10_000

// BenchmarkSequence takes IDs of a plain tag and numbers of entities in turns, from one node on SQLite in the same
// process, and reports how many of each come per second.
func BenchmarkSequence(b *testing.B) {
	node := nodeWithSequence(b)
	ids, err := client.New(client.Addresses(node.AddrOf("grpc")))
	if err != nil {
		b.Fatal(err)
	}
	defer ids.Close(context.Background())
	rdb := redis.NewClient(&redis.Options{Addr: node.AddrOf("resp")})
	defer rdb.Close()
	next := 0
	entity := func() string {
		next++
		return fmt.Sprint(next % entitiesOfSequence)
	}
	batch := func() error {
		requests := make([]leaf.SequenceRequest, leaf.MaxEntities)
		for i := range requests {
			requests[i] = leaf.SequenceRequest{Entity: entity(), Count: 1}
		}
		results, err := ids.NextEach(b.Context(), "chat", requests)
		for _, r := range results {
			if err == nil {
				err = r.Err
			}
		}
		return err
	}
	for range entitiesOfSequence / leaf.MaxEntities { // the first call of a section reads its row
		for err := batch(); err != nil; err = batch() {
			if leaf.ClassOf(err).Err == nil {
				b.Fatal(err)
			}
		}
	}
	const pipeline = 100
	for _, tt := range []struct {
		name            string
		count           int // of numbers in a call
		plain, sequence func() error
	}{
		{"HTTP one by one", 1, func() error { return fetch(b.Context(), node, "/api/segment/get/plain") }, func() error { return fetch(b.Context(), node, "/v1/sequence/next/chat/"+entity()) }},
		{"Redis pipeline of 100", pipeline, func() error {
			return piped(b.Context(), rdb, pipeline, func(p redis.Pipeliner) { p.Incr(b.Context(), "plain") })
		}, func() error {
			return piped(b.Context(), rdb, pipeline, func(p redis.Pipeliner) { p.HIncrBy(b.Context(), "chat", entity(), 1) })
		}},
		{"Go client 1000 at once", leaf.MaxEntities, func() error {
			_, err := ids.NextN(b.Context(), "plain", leaf.MaxEntities)
			return err
		}, batch},
	} {
		b.Run(tt.name, func(b *testing.B) {
			var took [2]time.Duration
			for b.Loop() {
				for i, call := range []func() error{tt.plain, tt.sequence} {
					began := time.Now()
					if err := call(); err != nil {
						b.Fatal(err)
					}
					took[i] += time.Since(began)
				}
			}
			numbers := float64(b.N * tt.count)
			b.ReportMetric(numbers/took[0].Seconds(), "IDs/s")
			b.ReportMetric(numbers/took[1].Seconds(), "entities/s")
		})
	}
}

// nodeWithSequence starts a node with a plain tag and the sequence chat.
func nodeWithSequence(b *testing.B) *app.App {
	b.Helper()
	dir, err := os.MkdirTemp("", "leaf") //nolint:usetesting // the name of a benchmark makes the path too long for a socket
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	c := config.Default()
	c.DataDir, c.HTTP.Addr, c.StorePrivate, c.Snowflake.Enable = dir, "127.0.0.1:0", true, false
	node, err := app.New(c, app.Options{})
	if err == nil {
		err = node.Start(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := node.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	if _, err := manage.Ask(b.Context(), node.Backend(), manage.CreateTag{NewRow: segment.NewRow{Tag: "plain", Start: 1, Step: 1_000_000}}); err != nil {
		b.Fatal(err)
	}
	if _, err := manage.Ask(b.Context(), node.Backend(), manage.CreateSequence{Name: "chat", Start: 1, Step: 10_000}); err != nil {
		b.Fatal(err)
	}
	return node
}

// fetch asks for a path and reads the answer.
func fetch(ctx context.Context, node *app.App, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+node.Addr()+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", path, resp.StatusCode, body)
	}
	return err
}

// piped sends n commands as a pipeline.
func piped(ctx context.Context, rdb *redis.Client, n int, add func(redis.Pipeliner)) error {
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for range n {
			add(p)
		}
		return nil
	})
	return err
}
