package worker_test

import (
	"context"
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// A program claims a worker ID and issues snowflake IDs, without a server. A real one
// takes its registry from driver/sqldb, driver/etcd or driver/zookeeper, and its disk
// from driver/datadir.
func Example() {
	ctx := context.Background()
	registry := worker.NewPool(memory.NewRegistry().Open())
	h, err := worker.New(registry, nil, worker.Config{
		Layout:    snowflake.Leaf(),
		Namespace: "example",
		Address:   "10.0.0.1:8080",
		Numbers:   leaf.Range{Lo: 7, Hi: 8},
		Fresh:     true, // only because it is in memory; one that outlives the process is declared with leaf worker init
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := h.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	id, err := h.Next(ctx, "order")
	if err != nil {
		fmt.Println(err)
		return
	}
	parts, err := snowflake.Leaf().Decode(id)
	fmt.Println("worker", parts.Worker, err)
	fmt.Println(h.Close(ctx)) // gives the number back
	// Output:
	// worker 7 <nil>
	// <nil>
}
