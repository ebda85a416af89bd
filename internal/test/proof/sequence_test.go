package proof_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestSequence: callers ask two nodes on one store for numbers of entities, of which both own some. One node is killed. The
// numbers of each entity are in real-time order, and no caller is left waiting.
func TestSequence(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(t *testing.T) string{
		"MariaDB":    func(t *testing.T) string { t.Helper(); return server.MariaDB(t).URL() },
		"MySQL":      func(t *testing.T) string { t.Helper(); return server.MySQL(t).URL() },
		"PostgreSQL": func(t *testing.T) string { t.Helper(); return server.Postgres(t).URL() },
		"etcd": func(t *testing.T) string {
			t.Helper()
			ns := server.Etcd(t)
			return "etcd://" + strings.Join(ns.Servers, ",") + "/" + strings.ReplaceAll(ns.Root, "/", "-")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := store(t)
			mustLeaf(t, "schema", "apply", "--store", url)
			mustLeaf(t, "sequence", "create", "chat", "--step", "100", "--store", url)
			nodes := []*node{newNode(t, "n0", url), newNode(t, "n1", url)}
			for _, n := range nodes {
				n.start(t)
			}
			for _, n := range nodes {
				n.waitReady(t)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			began := time.Now()
			entities, m := map[string]*calls{}, watchMachine(t)
			var clients sync.WaitGroup
			for e := range 4 { // in as many sections
				entity, c := fmt.Sprint("user-", e), &calls{}
				entities[entity] = c
				for i := range nodes {
					clients.Go(func() {
						c.ask(ctx, began, "/v1/sequence/next/chat/"+entity, []*node{nodes[i], nodes[1-i]}, 2*time.Second)
					})
				}
			}
			await(t, entities, "at the start")
			nodes[0].kill()
			await(t, entities, "after a crash")
			stop()
			clients.Wait()
			for entity, c := range entities {
				c.check(t, entity, m, began)
			}
		})
	}
}
