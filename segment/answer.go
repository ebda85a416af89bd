package segment

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf/internal/bounded"
)

// postsAtOnce is how many posts are on their way to the board at a time. A repair of a sequence asks about 64 rows
// at once, and a lost database concerns all 1,024. Each post is a transaction of several round trips, and neither a repair
// nor an operator waits long (patience).
const postsAtOnce = 8

// postMany calls post with 0 to n-1, several at a time, and then took with what came of it, one at a time. It begins no
// post after limit, but for a node that stops: no later look posts what this one leaves. left: some were not begun.
func (s *shard) postMany(n int, limit time.Duration, post func(i int) error, took func(i int, err error)) (left bool, errs error) {
	a := s.alloc
	began, stops := a.rt.Now(), s.watcher.left
	var mu sync.Mutex // of what follows, and of what took changes
	begun := 0
	next := func() (i int, more bool) {
		mu.Lock()
		defer mu.Unlock()
		if left = begun < n && !stops && a.rt.Now().Sub(began) >= limit; left || begun == n {
			return 0, false
		}
		begun++
		return begun - 1, true
	}
	some := func() {
		for i, more := next(); more; i, more = next() {
			err := post(i)
			mu.Lock()
			took(i, err)
			errs = errors.Join(errs, err)
			mu.Unlock()
		}
	}
	others := bounded.NewGroup(a.rt)
	for range min(postsAtOnce, n) - 1 {
		others.Start(some)
	}
	some()
	_ = others.Wait(context.Background()) // each call has a deadline
	return left, errs
}

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
	left, err := s.postMany(len(open), watchPause, func(i int) error {
		return s.postAnswer(ctx, open[i].Tag, open[i].Asked, a.say(open[i].Tag))
	}, func(i int, err error) {
		if err == nil {
			w.answered[open[i].Tag] = open[i].Asked
		}
	})
	w.behind = w.behind || left
	return err
}
