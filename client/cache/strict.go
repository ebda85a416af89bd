package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// StrictIssuer is a source that knows which tags are in strict order: an ID must be larger than that of
// every call, of any program, that had ended before its own call began. An ID in memory cannot be,
// so the cache keeps nothing of such a tag, and passes its calls on.
type StrictIssuer interface {
	leaf.Issuer

	// NextNStrict is NextN. strict says of these ranges that their tag is in strict order.
	NextNStrict(ctx context.Context, tag string, n int) (ranges []leaf.Range, strict bool, err error)
}

// errStrict: the tag is in strict order. The call goes to the source.
var errStrict = errors.New("cache: the tag is in strict order")

// fromSource asks the source, which may know of no strict order.
func (t *Tag) fromSource(ctx context.Context, n int) (ranges []leaf.Range, strict bool, err error) {
	if s, ok := t.cache.source.(StrictIssuer); ok {
		return s.NextNStrict(ctx, t.name, n)
	}
	ranges, err = t.cache.source.NextN(ctx, t.name, n)
	return ranges, false, err
}

// pass answers a call with what the source gives for this call alone.
func (t *Tag) pass(ctx context.Context, n int) ([]leaf.Range, error) {
	ranges, strict, err := t.fromSource(ctx, n)
	if err == nil && length(ranges) == 0 {
		err = fmt.Errorf("%w: tag %q: the source gave none of %d IDs and no error", leaf.ErrNotReady, t.name, n)
	}
	t.heed(err)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.orderLocked(strict)
	t.widenLocked()
	return ranges, nil
}

// orderLocked takes in whether the tag is in strict order, as an answer shows. If so, what is in
// memory is dropped, and what a fetch brings that is under way.
func (t *Tag) orderLocked(strict bool) {
	if strict && !t.strict {
		if t.flight != nil {
			t.flight.doubtful = true
		}
		t.drop()
	}
	t.strict = strict
}
