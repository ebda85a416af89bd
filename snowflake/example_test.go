package snowflake_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf/snowflake"
)

// A generator alone: who makes sure that nobody else has worker 378, and that the
// bound is durable, is up to the caller (package worker does both).
func Example() {
	noon := time.Date(2022, 6, 28, 12, 0, 0, 0, time.UTC)
	g, err := snowflake.New(snowflake.Config{
		Layout: snowflake.Leaf(),
		Worker: 378,
		Bound:  noon.UnixMilli() + 1,
		Now:    func() time.Time { return noon },
		Rand:   func() uint64 { return 5 },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := g.Next(context.Background())
	fmt.Println(id, err)

	p, err := g.Layout().Decode(id)
	fmt.Printf("%+v %v\n", p, err)
	fmt.Println(time.UnixMilli(g.Layout().Millis(p.Unit)).UTC())

	successor := g.Stop() // where the next generator of worker 378 may start
	_, err = g.Next(context.Background())
	fmt.Println(successor-noon.UnixMilli(), errors.Is(err, snowflake.ErrStopped))
	// Output:
	// 1541753275808194565 <nil>
	// {Unit:367582625343 Datacenter:0 Worker:378 Sequence:5} <nil>
	// 2022-06-28 12:00:00 +0000 UTC
	// 1 true
}

func ExampleParseLayout() {
	l, err := snowflake.ParseLayout("leaf,epoch=1700000000000")
	fmt.Println(l.Fingerprint(), err)
	fmt.Println(l.End().Format(time.DateOnly))
	_, err = snowflake.ParseLayout("time=41,worker=12,sequence=12")
	fmt.Println(err)
	// Output:
	// e1700000000000 u1ms t41 d0 w10 s12 <nil>
	// 2093-07-21
	// snowflake: invalid value: time+datacenter+worker+sequence=65: must be at most 63 bits
}
