package servertest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/leaf-idgen/leaf"
)

// direct is the smallest server that keeps the promises: a function call instead of a
// wire. A test breaks it in one place by setting a hook.
type direct struct {
	access leaf.Access
	shown  leaf.Credentials

	tag   func(tag string) string                  // as it arrives
	count func(n int) int                          // as it arrives
	ctx   func(context.Context) context.Context    // as the issuer gets it
	reply func([]leaf.Range) []leaf.Range          // as it arrives
	fail  func(error) error                        // as it arrives
	open  func(*direct) (*leaf.Issuers, error)     // instead of access.Open
	check func(tag string, n int) error            // instead of the checks
	serve func(ask func() error) (err error)       // instead of the guard against panics
	mode  func(i *leaf.Issuers, m int) leaf.Issuer // instead of the issuer of the mode
}

var errDied = errors.New("the connection was closed")

// start returns what the suite asks for.
func (d direct) start(_ testing.TB, a leaf.Access) leaf.Issuers {
	d.access = a
	return leaf.Issuers{Segment: directIssuer{&d, 0}, Snowflake: directIssuer{&d, 1}}
}

func (d direct) startAs(t testing.TB, a leaf.Access, c leaf.Credentials) leaf.Issuers {
	d.shown = c
	return d.start(t, a)
}

type directIssuer struct {
	*direct
	modeOf int
}

func (i directIssuer) Next(ctx context.Context, tag string) (int64, error) {
	ranges, err := i.NextN(ctx, tag, 1)
	if err != nil {
		return 0, err
	}
	return ranges[0].Lo, nil
}

func (i directIssuer) NextN(ctx context.Context, tag string, n int) (ranges []leaf.Range, err error) {
	issuers, err := i.issuers()
	if err != nil {
		return nil, i.failed(err)
	}
	check := valid
	if i.check != nil {
		check = i.check
	}
	if err := check(tag, n); err != nil {
		return nil, i.failed(err)
	}
	tag, n = hook(i.tag, tag), hook(i.count, n)
	ask := func() error {
		ranges, err = i.issuer(issuers).NextN(hook(i.ctx, ctx), tag, n)
		return err
	}
	serve := guard
	if i.serve != nil {
		serve = i.serve
	}
	if err := serve(ask); err != nil {
		return nil, i.failed(err)
	}
	return hook(i.reply, ranges), nil
}

// hook applies f, if there is one.
func hook[T any](f func(T) T, v T) T {
	if f == nil {
		return v
	}
	return f(v)
}

func guard(ask func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return ask()
}

func (d *direct) issuers() (*leaf.Issuers, error) {
	if d.open != nil {
		return d.open(d)
	}
	return d.access.Open(d.shown)
}

func (i directIssuer) issuer(of *leaf.Issuers) leaf.Issuer {
	switch {
	case i.mode != nil:
		return i.mode(of, i.modeOf)
	case i.modeOf == 1:
		return of.Snowflake
	}
	return of.Segment
}

func valid(tag string, n int) error {
	if n < 1 || n > leaf.MaxBatch {
		return leaf.BadField("count", n, "must be 1 to 100000")
	}
	return leaf.ValidateTag(tag)
}

func (d *direct) failed(err error) error {
	if d.fail != nil {
		return d.fail(err)
	}
	return outside(err)
}

// outside is err as a caller may see it.
func outside(err error) error {
	if leaf.ClassOf(err).Err == nil && !errors.Is(err, context.DeadlineExceeded) {
		return errors.New("leaf: internal error")
	}
	return err
}
