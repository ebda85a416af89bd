package segment_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

// IDs inside a program. The store is in memory to keep the example short; a real
// one is driver/sqldb on SQLite, MySQL, MariaDB or PostgreSQL (examples/embedded).
func Example() {
	ctx := context.Background()
	store := memory.New()
	if err := store.Create(ctx, segment.NewRow{Tag: "order", Start: 1, Step: 1000}); err != nil {
		log.Fatal(err)
	}
	dir, err := datadir.Open(exampleFolder()) // a real program keeps it across restarts
	if err != nil {
		log.Fatal(err)
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: store}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	alloc, err := segment.New(router, dir, segment.Config{NodeID: dir.NodeID()})
	if err != nil {
		log.Fatal(err)
	}
	if err := alloc.Start(ctx); err != nil {
		log.Fatal(err)
	}

	id, err := alloc.Next(ctx, "order")
	fmt.Println(id, err)
	order := alloc.Tag("order") // a handle saves the look-up
	id, err = order.Next(ctx)
	fmt.Println(id, err)
	ranges, err := order.NextN(ctx, 5)
	fmt.Println(ranges, err)

	fmt.Println(alloc.Close(ctx), dir.Close(), os.RemoveAll(dir.Path()))
	// Output:
	// 1 <nil>
	// 2 <nil>
	// [[3, 8)] <nil>
	// <nil> <nil> <nil>
}

func exampleFolder() string {
	folder, err := os.MkdirTemp("", "leaf-example")
	if err != nil {
		log.Fatal(err)
	}
	return folder
}
