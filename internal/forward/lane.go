package forward

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/answers"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/internal/owner"
)

// lanes are the calls to owners that are under way, by owner and tag. While one call of a lane is under way, others that
// come wait for its end, and then go together as one: sixteen callers then cost the owner hardly more than one.
//
// Strict order holds: a call is part of a batch that is sent after the call began, and the calls of a batch are under way
// at the same time, so that any of them may have the smaller numbers.
type lanes struct {
	mu    sync.Mutex
	by    map[lane]*queue // those with a call under way
	large map[lane]*large // those with calls for many IDs
}

// lane is what calls have in common that may go together.
type lane struct {
	to  owner.Route
	tag string
}

// maxTogether is the largest call, in IDs, that goes with others. The IDs of a larger one take the owner long, and company
// saves hardly anything of that.
const maxTogether = 100

// maxLarge is how many larger calls for one tag are under way to its owner at the same time. An owner that has no IDs of the tag, as
// while a transaction has locked its row, holds each of them for a second, and the calls for other tags need streams, too.
const maxLarge = 4

// large is the larger calls of a lane.
type large struct {
	room  chan struct{} // has one element for each call under way
	calls int           // also those that wait for room
}

// queue is the calls of a lane that wait.
type queue struct {
	waiting []*passenger
	limit   int // of the IDs of one call: less than leaf.MaxBatch after the owner had fewer
}

// passenger is one call that waits.
type passenger struct {
	n     int
	since time.Time // when it came
	left  bool      // its caller has gone
	done  chan struct{}
	got   []leaf.Range
	err   error
}

// ask is one attempt.
func (i *Issuer) ask(ctx context.Context, to owner.Route, tag string, n int) ([]leaf.Range, error) {
	l := lane{to, tag}
	if n > maxTogether {
		leave, err := i.enter(ctx, l)
		if err != nil {
			return nil, err
		}
		defer leave()
		got, _, err := i.call(ctx, to, tag, n)
		return got, err
	}
	if p := i.lanes.join(l, n, i.rt.Now()); p != nil {
		return i.lanes.wait(ctx, p)
	}
	defer i.next(l)
	got, hangs, err := i.call(ctx, to, tag, n)
	if hangs {
		i.lanes.disperse(l, err)
	}
	return got, err
}

// call asks an owner. An owner that has not answered in the time of an attempt hangs, and is not the owner for long.
func (i *Issuer) call(ctx context.Context, to owner.Route, tag string, n int) (got []leaf.Range, hangs bool, err error) {
	attempt, cancel := i.rt.WithTimeout(ctx, i.cfg.Attempt)
	defer cancel()
	got, err = i.cfg.Remote.NextN(attempt, to, tag, n)
	return got, err != nil && attempt.Err() != nil && ctx.Err() == nil, err
}

// enter waits until there is room for a larger call, for the time of an attempt: the owner may be another one by then. The
// caller calls leave at its end.
func (i *Issuer) enter(ctx context.Context, l lane) (leave func(), err error) {
	ctx, cancel := i.rt.WithTimeout(ctx, i.cfg.Attempt)
	defer cancel()
	calls := i.lanes.count(l)
	select {
	case calls.room <- struct{}{}:
		return func() { <-calls.room; i.lanes.discount(l) }, nil
	case <-ctx.Done():
		i.lanes.discount(l)
		return nil, &brokenError{ctx.Err()}
	}
}

// count counts a larger call of a lane, and discount its end.
func (l *lanes) count(of lane) *large {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := l.large[of]
	if calls == nil {
		calls = &large{room: make(chan struct{}, maxLarge)}
		l.large[of] = calls
	}
	calls.calls++
	return calls
}

func (l *lanes) discount(of lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.large[of].calls--; l.large[of].calls == 0 {
		delete(l.large, of)
	}
}

// join returns the passenger that waits in a lane, nil if no call of the lane is under way: then this is one.
func (l *lanes) join(to lane, n int, now time.Time) *passenger {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.by[to]
	if q == nil {
		l.by[to] = &queue{limit: leaf.MaxBatch}
		return nil
	}
	p := &passenger{n: n, since: now, done: make(chan struct{})}
	q.waiting = append(q.waiting, p)
	return p
}

// disperse gives an error to those that wait in a lane: their owner hangs.
func (l *lanes) disperse(of lane, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.by[of]
	for _, p := range q.waiting {
		p.err = err
		close(p.done)
	}
	q.waiting = nil
}

// wait returns what the passenger gets, or why it has left.
func (l *lanes) wait(ctx context.Context, p *passenger) ([]leaf.Range, error) {
	select {
	case <-p.done:
		return p.got, p.err
	case <-ctx.Done():
	}
	l.mu.Lock()
	p.left = true // if it is under way, its IDs are lost
	l.mu.Unlock()
	return nil, &brokenError{ctx.Err()}
}

// next lets those go that wait in a lane, when a call of it has ended.
func (i *Issuer) next(l lane) {
	if aboard, n := i.lanes.board(l); n > 0 {
		go func() {
			for n > 0 {
				i.carry(l, aboard, n)
				aboard, n = i.lanes.board(l)
			}
		}()
	}
}

// board returns the passengers of the next call of a lane, and how many IDs they want. If there are none, the lane ends.
func (l *lanes) board(of lane) (aboard []*passenger, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.by[of]
	for len(q.waiting) > 0 {
		p := q.waiting[0]
		if n > 0 && n+p.n > q.limit {
			break
		}
		if q.waiting = q.waiting[1:]; !p.left {
			aboard, n = append(aboard, p), n+p.n
		}
	}
	if n == 0 {
		delete(l.by, of)
	}
	return aboard, n
}

// carry makes one call for n IDs, and divides them. A panic is the error of every passenger: the servers log it.
func (i *Issuer) carry(l lane, aboard []*passenger, n int) {
	hangs := false
	got, err := bounded.Recover("the call to an owner", func() (got []leaf.Range, err error) {
		got, hangs, err = i.call(context.Background(), l.to, l.tag, n)
		return got, err
	})
	if hangs {
		i.lanes.disperse(l, err)
	}
	for _, p := range i.lanes.settle(l, aboard, n, err, i.rt.Now().Add(-i.cfg.Attempt)) {
		if p.err = err; err == nil {
			p.got, got = answers.Cut(got, p.n)
		}
		close(p.done)
	}
}

// settle takes in the end of a call for n IDs, and returns the passengers for whom the call was the last one. That is all of
// them, unless the owner did not have n IDs. Then the next calls of the lane are smaller, and a passenger who came after
// recent goes again: no caller gets an error because of what others want. The others get the error, because an owner
// without a database has nothing for fewer callers either. After a success the next call may be a little larger.
func (l *lanes) settle(of lane, aboard []*passenger, n int, err error, recent time.Time) []*passenger {
	tooMany := len(aboard) > 1 && (errors.Is(err, leaf.ErrExhausted) || errors.Is(err, leaf.ErrOverflow))
	if !tooMany && err != nil {
		return aboard
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.by[of]
	if !tooMany {
		q.limit = min(q.limit+q.limit/8+1, leaf.MaxBatch)
		return aboard
	}
	q.limit = max(1, n/2)
	ended := 0 // they are in the order in which they came
	for ended < len(aboard) && !aboard[ended].since.After(recent) {
		ended++
	}
	q.waiting = append(aboard[ended:], q.waiting...)
	return aboard[:ended]
}
