package segment

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/leaf-idgen/leaf/internal/bounded"
)

// answersAtOnce is how many answers are on their way to the board at a time. A repair of a sequence asks about 64 rows
// at once. Each answer is a transaction of several round trips, and a repair does not wait long (patience).
const answersAtOnce = 8

// answer answers questions, the newest first: many old ones must not hide one that
// a caller waits for. What takes too long is left to the next look, which then comes at once.
func (s *shard) answer(ctx context.Context, open []Notice) error {
	a, w := s.alloc, &s.watcher
	if len(open) == 0 {
		return nil
	}
	// Enter again: a database that lost commits may have lost the list of nodes, too, and a
	// repair does not wait for the answer of a node that is not on it.
	if err := s.enter(ctx, 0); err != nil {
		return err
	}
	slices.SortFunc(open, func(x, y Notice) int { return cmp.Compare(y.Asked, x.Asked) })
	began := a.rt.Now()
	var mu sync.Mutex // of what follows, and of w.answered
	var errs error
	next := func() (n Notice, more bool) {
		mu.Lock()
		defer mu.Unlock()
		if w.behind = len(open) > 0 && a.rt.Now().Sub(began) >= watchPause; w.behind || len(open) == 0 {
			return Notice{}, false
		}
		n, open = open[0], open[1:]
		return n, true
	}
	some := func() {
		for n, more := next(); more; n, more = next() {
			err := s.postAnswer(ctx, n.Tag, n.Asked, a.say(n.Tag))
			mu.Lock()
			if err == nil {
				w.answered[n.Tag] = n.Asked
			}
			errs = errors.Join(errs, err)
			mu.Unlock()
		}
	}
	others := bounded.NewGroup(a.rt)
	for range min(answersAtOnce, len(open)) - 1 {
		others.Start(some)
	}
	some()
	_ = others.Wait(context.Background()) // each call has a deadline
	return errs
}
