// Command embedded issues IDs inside a program, without a server: the engine, a
// store and a data directory are all it takes.
//
//	go run ./examples/embedded                                        # SQLite in ./embedded-data
//	go run ./examples/embedded mysql://user:password@host:3306/leaf   # a database that has the tag order
//
// In a database, make the table and the tag once: leaf schema apply --store URL, and leaf tag create order --store URL.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
)

func main() {
	url := "sqlite:embedded-data/leaf.db"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	if err := run(context.Background(), os.Stdout, "embedded-data", url); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, folder, url string) (err error) {
	// The data directory keeps the fence: the proof, across restarts, of which
	// numbers this node holds. It must survive the process, and no other process
	// may use it, which Open makes sure of. It is for one Allocator, which may have
	// several databases.
	dir, err := datadir.Open(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()

	store, err := sqldb.Open(url, sqldb.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	// Only what is in a file of this program alone is made here. In a database that other programs use, a row that
	// is not there may have been lost: a program that makes it again begins at 1, and repeats their IDs.
	if strings.HasPrefix(url, "sqlite:") {
		if err := create(ctx, store); err != nil {
			return err
		}
	}

	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: store}}, nil)
	if err != nil {
		return err
	}
	alloc, err := segment.New(router, dir, segment.Config{NodeID: dir.NodeID(), Logger: slog.Default()})
	if err != nil {
		return err
	}
	// A clean Close returns unused numbers to the database, so that a restart leaves no gap.
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = errors.Join(err, alloc.Close(ctx))
	}()
	if err := alloc.Start(ctx); err != nil {
		return err
	}

	order := alloc.Tag("order") // a handle saves the look-up by name
	for range 3 {
		id, err := order.Next(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, id)
	}
	batch, err := alloc.NextN(ctx, "order", 1500)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "1500 more:", batch)
	return nil
}

// create makes the tables and the tag that are missing, and changes nothing else.
func create(ctx context.Context, store *sqldb.Store) error {
	if _, err := store.ApplySchema(ctx); err != nil {
		return err
	}
	_, err := store.Lookup(ctx, "order")
	if errors.Is(err, leaf.ErrUnknownTag) {
		return store.Create(ctx, segment.NewRow{Tag: "order", Start: 1, Step: 1000})
	}
	return err
}
