package leaftest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/leaftest"
)

// Shop is what is tested: it takes a leaf.Issuer, and so a client.
type Shop struct{ ids leaf.Issuer }

// Order numbers an order, or says that it cannot now.
func (s Shop) Order(ctx context.Context) string {
	id, err := s.ids.Next(ctx, "order")
	switch {
	case errors.Is(err, leaf.ErrThrottled):
		return fmt.Sprint("come back in ", leaf.RetryAfter(err))
	case err != nil:
		return "closed: " + leaf.ClassOf(err).Code
	}
	return fmt.Sprint("order ", id)
}

// A test has leaftest.New(t, "order"), which needs no Close.
func Example() {
	server := leaftest.NewServer("order")
	defer server.Close()
	shop := Shop{server.Client()}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	fmt.Println(shop.Order(ctx))
	fmt.Println(shop.Order(ctx))

	server.Fail(leaf.Throttled("100 orders per minute", time.Minute))
	fmt.Println(shop.Order(ctx))
	server.Fail(leaf.ErrBlocked)
	fmt.Println(shop.Order(ctx))

	server.Fail(nil)
	fmt.Println(shop.Order(ctx))
	// Output:
	// order 1
	// order 2
	// come back in 1m0s
	// closed: blocked
	// order 3
}

// A server that stops keeps its port and its numbers.
func ExampleServer_Stop() {
	server := leaftest.NewServer("order")
	defer server.Close()
	shop := Shop{server.Client()}

	server.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	fmt.Println(shop.Order(ctx))

	server.Start()
	ctx, cancel = context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(shop.Order(ctx))
	// Output:
	// closed: not_ready
	// order 1
}
