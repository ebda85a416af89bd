// Command client gets IDs from a Leaf cluster with the Go client.
//
//	leaf serve                                                 # in another terminal
//	go run ./examples/client                                   # 127.0.0.1:9090
//	go run ./examples/client etcd://10.0.0.1:2379/leaf         # the nodes that registered there
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/client/directory"
)

func main() {
	nodes := "127.0.0.1:9090"
	if len(os.Args) > 1 {
		nodes = os.Args[1]
	}
	if err := run(context.Background(), os.Stdout, nodes, "leaf-segment-test"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, nodes, tag string) (err error) {
	// One client per process, for all goroutines: calls that run at the same time
	// share requests.
	resolver, err := resolve(nodes)
	if err != nil {
		return err
	}
	c, err := client.New(resolver, client.WithName("example"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()

	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	id, err := c.Next(ctx, tag)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "one ID:", id)
	ranges, err := c.NextN(ctx, tag, 1000)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "a thousand:", ranges)
	id, err = c.Snowflake().Next(ctx, "any")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "one of snowflake mode:", id)
	return nil
}

// resolve returns a fixed list for HOST:PORT,HOST:PORT, and a directory for a URL.
func resolve(nodes string) (client.Resolver, error) {
	if strings.Contains(nodes, "://") {
		return directory.Open(nodes)
	}
	return client.Addresses(strings.Split(nodes, ",")...), nil
}
