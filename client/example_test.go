package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/client/check"
	"github.com/leaf-idgen/leaf/client/directory"
	"github.com/leaf-idgen/leaf/client/leaftest"
	"github.com/leaf-idgen/leaf/discovery"
)

// One client serves a whole program. The server here is one for tests; a program names
// its nodes: client.Addresses("10.0.0.1:9090", "10.0.0.2:9090").
func Example() {
	server := leaftest.NewServer("order")
	defer server.Close()

	c, err := client.New(client.Addresses(server.Addr()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	id, err := c.Next(ctx, "order")
	fmt.Println(id, err)
	ranges, err := c.NextN(ctx, "order", 500)
	fmt.Println(ranges, err)
	_, err = c.Next(ctx, "nobody knows this tag")
	fmt.Println(errors.Is(err, leaf.ErrUnknownTag))
	// Output:
	// 1 <nil>
	// [[2, 502)] <nil>
	// true
}

// With a cache a call costs nanoseconds, and an outage of all nodes goes unnoticed for as
// long as the IDs in memory last.
func Example_cache() {
	server := leaftest.NewServer("order")
	defer server.Close()
	c, err := client.New(client.Addresses(server.Addr()), client.WithCache(cache.Config{Min: 1000}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	first, err := c.Next(ctx, "order")
	fmt.Println(first, err)
	server.Stop() // nobody notices
	for range 899 {
		if _, err := c.Next(ctx, "order"); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(c.Next(ctx, "order"))

	if err := c.Close(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println("lost:", c.Stats().Cache.Unused >= 99) // and never issued again
	// Output:
	// 1 <nil>
	// 901 <nil>
	// lost: true
}

// A fixed list of nodes. They are not connected to yet when New returns.
func ExampleNew() {
	a, b := leaftest.NewServer("order"), leaftest.NewServer("order")
	defer a.Close()
	defer b.Close()

	c, err := client.New(client.Addresses(a.Addr(), b.Addr()),
		client.WithName("shop"), // what limits per client count by
		client.WithTimeout(10*time.Second),
		client.WithLogger(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(context.Background())

	a.Stop() // the other one answers
	_, err = c.Next(context.Background(), "order")
	fmt.Println(err, b.Last("order") > 0)
	// Output: <nil> true
}

// Nodes with zones: those of the own one are asked as long as any of them works.
func ExampleNodes() {
	near, far := leaftest.NewServer("order"), leaftest.NewServer("order")
	defer near.Close()
	defer far.Close()

	c, err := client.New(client.Nodes(
		discovery.Node{ID: "1", Zone: "east", Weight: 100, GRPC: near.Addr()},
		discovery.Node{ID: "2", Zone: "west", Weight: 100, GRPC: far.Addr()},
	), client.WithZone("east"), client.WithHedgeAfter(10*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 10 {
		if _, err := c.Next(ctx, "order"); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(near.Last("order"), far.Last("order"))
	// Output: 10 0
}

// All addresses of a name, such as a headless service of Kubernetes.
func ExampleDNS() {
	server := leaftest.NewServer("order")
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}

	c, err := client.New(client.DNS(net.JoinHostPort("localhost", port)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(c.Next(ctx, "order"))
	// Output: 1 <nil>
}

// The nodes that registered themselves. The URL is what they have as node.discovery or
// as their first store, such as "etcd://10.0.0.1:2379/leaf" or "mysql://app@db/leaf".
func ExampleNew_registry() {
	server := leaftest.NewServer("order")
	defer server.Close()
	folder, err := os.MkdirTemp("", "leaf-example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	url := "sqlite:" + filepath.Join(folder, "leaf.db")
	register(url, server.Node()) // as a node does

	nodes, err := directory.Open(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nodes.Close()
	c, err := client.New(nodes,
		client.WithCluster("5c0f0b7e1d0f4c3a9a8e2f6b7c1d2e3f"),   // from /readyz of a node; the file needs it
		client.WithNodeFile(filepath.Join(folder, "nodes.json")), // so that the program starts while the registry is down
		client.WithTimeout(10*time.Second),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(context.Background())
	fmt.Println(c.Next(context.Background(), "order"))
	// Output: 1 <nil>
}

func register(url string, n discovery.Node) {
	d, err := directory.Open(url)
	if err != nil {
		panic(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := d.Put(ctx, n, time.Minute); err != nil {
		panic(err)
	}
}

func ExampleWithCache() {
	server := leaftest.NewServer("order")
	defer server.Close()
	c := server.Client(client.WithCache(cache.Config{
		Min:  100,              // IDs of the first fetch
		Max:  10_000,           // and of the largest
		Span: 10 * time.Minute, // how long an outage may last
	}))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(c.Next(ctx, "order"))
	fmt.Println(c.Stats().Cache.Fetched, "IDs came,", c.Stats().Cache.Held, "are left")
	// Output:
	// 1 <nil>
	// 100 IDs came, 99 are left
}

// A canary that fails loudly when the database is set back.
func ExampleWithUniquenessCheck() {
	server := leaftest.NewServer("order")
	defer server.Close()
	c := server.Client(client.WithUniquenessCheck(), client.WithLogger(slog.New(slog.DiscardHandler)))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	if _, err := c.NextN(ctx, "order", 100); err != nil {
		fmt.Println(err)
		return
	}
	server.AddTag("order", 51) // 51 to 100 come again
	_, err := c.NextN(ctx, "order", 10)
	fmt.Println(errors.Is(err, check.ErrRepeated), c.Stats().Violations)
	// Output: true 1
}

// A batch is whole or an error. Its ranges are half-open and grow.
func ExampleClient_NextN() {
	server := leaftest.NewServer("order")
	defer server.Close()
	c := server.Client()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	ranges, err := c.NextN(ctx, "order", 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range ranges {
		for id := r.Lo; id < r.Hi; id++ {
			fmt.Print(id, " ")
		}
	}
	// Output: 1 2 3 4
}

// Snowflake mode needs no tag: the name is for logs and limits.
func ExampleClient_Snowflake() {
	server := leaftest.NewServer()
	defer server.Close()
	ids := server.Client().Snowflake()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	id, err := ids.Next(ctx, "shop")
	fmt.Println(id > 0, err)
	// Output: true <nil>
}

// Each user of a chat has numbers of its own. A node makes a sequence with leaf sequence create.
func ExampleClient_Sequence() {
	server := leaftest.NewServer()
	defer server.Close()
	server.AddSequence("chat")
	chat := server.Client().Sequence("chat")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	fmt.Println(chat.Next(ctx, "user-7"))
	fmt.Println(chat.Next(ctx, "user-7"))

	// Many users in one request: each is answered by itself.
	results, err := chat.NextEach(ctx, []leaf.SequenceRequest{{Entity: "user-7", Count: 1}, {Entity: "user-8", Count: 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Println(r.Range, r.Err)
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
	// [3, 4) <nil>
	// [1, 4) <nil>
}

// Calls under way are answered before Close returns, if its context allows.
func ExampleClient_Close() {
	server := leaftest.NewServer("order")
	defer server.Close()
	c, err := client.New(client.Addresses(server.Addr()))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(c.Next(ctx, "order"))
	fmt.Println(c.Close(ctx))
	_, err = c.Next(ctx, "order")
	fmt.Println(errors.Is(err, leaf.ErrNotReady))
	// Output:
	// 1 <nil>
	// <nil>
	// true
}
