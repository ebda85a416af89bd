package servertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// waiting is a fake whose calls for the tag "wait" wait until release is called or their
// context ends.
type waiting struct {
	*fake
	entered chan struct{} // gets a value per call that waits
	ended   chan struct{} // gets a value per call whose context ended
	release func()
}

func newWaiting() *waiting {
	released := make(chan struct{})
	w := &waiting{
		entered: make(chan struct{}, 1000),
		ended:   make(chan struct{}, 1000),
		release: sync.OnceFunc(func() { close(released) }),
	}
	w.fake = &fake{answer: func(ctx context.Context, c call) ([]leaf.Range, error) {
		if c.tag == "wait" {
			w.entered <- struct{}{}
			select {
			case <-released:
			case <-ctx.Done():
				w.ended <- struct{}{}
				return nil, ctx.Err()
			}
		}
		return []leaf.Range{{Lo: 5, Hi: 5 + int64(c.n)}}, nil
	}}
	return w
}

// wait makes a call that waits, with a deadline, and returns its error. Before it makes
// one that does not, so that the deadline is not spent on a connection.
func (b *bench) wait(w way, wire leaf.Issuers, f *waiting) error {
	b.Helper()
	b.Cleanup(f.release) // before the server is stopped, which waits for its requests
	if _, err := w.ask(b.call(b.patience), wire, "order"); err != nil {
		b.Fatalf("%v: %v", w, err)
	}
	var err error
	var done chan struct{}
	for within := b.deadline; ; within *= 2 {
		// A protocol may need a new connection per call: on a busy machine the deadline
		// can be over before the issuer is asked, which says nothing yet.
		ctx := b.call(within)
		done = make(chan struct{})
		go func() {
			defer close(done)
			_, err = w.ask(ctx, wire, "wait")
		}()
		asked := false
		select {
		case <-f.entered:
			asked = true
		case <-done:
			select {
			case <-f.entered: // both at once
				asked = true
			default:
			}
		}
		if asked {
			break
		}
		if within > b.patience {
			b.Fatalf("%v: the issuer was not asked: %v", w, err)
		}
	}
	select {
	case <-done:
		return err
	case <-time.After(b.patience):
		f.release()
		<-done
		b.Fatalf("%v: the call goes on %v after its deadline", w, b.patience)
		return nil
	}
}

func (b *bench) soon(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(b.patience):
		return false
	}
}

// deadline: the caller learns in time that a retry helps, the issuer learns that no caller
// waits any more, and the next call works.
func deadline(b *bench) {
	for _, w := range ways {
		f := newWaiting()
		wire := b.start(b, f.access())
		err := b.wait(w, wire, f)
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, leaf.ErrNotReady) && !errors.Is(err, leaf.ErrExhausted) {
			b.Errorf("%v after its deadline: %v; want DeadlineExceeded, ErrNotReady or ErrExhausted", w, err)
		}
		if !b.opt.NoCancel && !b.soon(f.ended) {
			b.Fatalf("%v: the issuer waits on after its caller's deadline", w)
		}
		f.release()
		if _, err := w.ask(b.call(b.patience), wire, "order"); err != nil {
			b.Errorf("%v after a call that ended at its deadline: %v", w, err)
		}
	}
}
