// Command quickstart is the program of docs/CLIENT.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
)

func main() {
	text, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, text)
}

func run() (string, error) {
	c, err := client.New(client.Addresses("127.0.0.1:9090"))
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	text, err := orders(ctx, c)
	return text, errors.Join(err, c.Close(ctx))
}

// orders takes a leaf.Issuer, which a client is, so that a test can give it another one.
func orders(ctx context.Context, ids leaf.Issuer) (string, error) {
	id, err := ids.Next(ctx, "leaf-segment-test") // one ID
	if err != nil {
		return "", err
	}
	ranges, err := ids.NextN(ctx, "leaf-segment-test", 500) // exactly 500, in growing order
	if err != nil {
		return "", err
	}
	return fmt.Sprint("one is ", id, ", 500 more are ", ranges), nil
}
