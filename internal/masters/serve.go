package masters

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// take takes IDs from part i. It waits for a load, unless its context is inStock.
type take func(ctx context.Context, i int) error

// serve takes from one part of the tag, as the comment of the package says.
func (x *Issuer) serve(ctx context.Context, t *tag, from take) error {
	err := x.choose(ctx, t, from)
	if err == nil {
		x.remember(t)
	}
	return err
}

func (x *Issuer) choose(ctx context.Context, t *tag, from take) error {
	for _, i := range t.order {
		avoided := t.avoided[i].Load()
		if avoided && !x.engine.Stocked(t.parts[i]) {
			continue
		}
		if from(inStock, i) == nil {
			if avoided {
				t.avoided[i].Store(false)
			}
			return nil
		}
		if !avoided {
			break // wait for it, before others are taken from
		}
	}
	return x.wait(ctx, t, from)
}

// wait waits for the parts in turn, first for those that are not avoided.
func (x *Issuer) wait(ctx context.Context, t *tag, from take) error {
	if err := leaf.Admit(ctx); err != nil {
		return err
	}
	ctx, cancel := x.cfg.Runtime.WithTimeout(ctx, x.cfg.MaxWait)
	defer cancel()
	errs := make([]error, len(t.parts))
	for _, i := range t.order {
		if t.avoided[i].Load() {
			continue
		}
		if _, errs[i] = x.attempt(ctx, t, i, from); errs[i] == nil {
			return nil
		}
		if ctx.Err() != nil {
			return t.verdict(errs)
		}
		t.avoided[i].Store(true)
	}
	for {
		waited := false
		for _, i := range t.order {
			var patient bool
			if patient, errs[i] = x.attempt(ctx, t, i, from); errs[i] == nil {
				t.avoided[i].Store(false)
				return nil
			}
			if ctx.Err() != nil {
				return t.verdict(errs)
			}
			waited = waited || patient
		}
		if !waited { // else this loop would spin
			return t.verdict(errs)
		}
	}
}

// attempt takes from part i, and waits for it as long as its patience lasts: a share of what is left of the call's time.
// patient reports whether it waited that long.
//
// The engine hears of the end of its patience as of a caller that left. So it raises no alarm that callers were
// rejected: this one is not.
func (x *Issuer) attempt(ctx context.Context, t *tag, i int, from take) (patient bool, err error) {
	patience := x.cfg.Patience
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, end.Sub(x.cfg.Runtime.Now())/time.Duration(len(t.parts)))
	}
	limit, end := x.cfg.Runtime.WithTimeout(ctx, max(patience, time.Millisecond))
	defer end()
	inner, leave := context.WithCancel(ctx)
	defer leave()
	defer context.AfterFunc(limit, func() {
		if ctx.Err() == nil { // else inner has the error of ctx
			leave()
		}
	})()
	err = from(inner, i)
	return inner.Err() != nil, err
}

// verdict returns the error of a call, from those of the parts: one after which a retry can help, if there is one.
// A part without an error was not asked, because there was no time.
func (t *tag) verdict(errs []error) error {
	var worst error
	for _, i := range t.order {
		switch err := errs[i]; {
		case err == nil:
		case leaf.ClassOf(err).Retryable:
			return err
		case worst == nil || errors.Is(worst, leaf.ErrUnknownTag):
			worst = err
		}
	}
	if errors.Is(worst, leaf.ErrUnknownTag) {
		return fmt.Errorf("%w: %q", leaf.ErrUnknownTag, t.name)
	}
	return worst
}
