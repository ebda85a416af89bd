package limit

import (
	"context"
	"time"
)

// lines are the concurrency limits of a mode: one for each database that its requests wait for. What requests that wait
// for one database hold is not missing to those that another one can serve.
type lines struct {
	all []*adaptive
	of  func(tag string) int // which one; negative: the last. nil: there is one
}

func newLines(c Config, perTag bool, n int, of func(tag string) int) lines {
	l := lines{of: of}
	for range n {
		l.all = append(l.all, newAdaptive(c, perTag))
	}
	return l
}

// last is the line of what waits for any database.
func (l *lines) last() lines { return lines{all: l.all[len(l.all)-1:]} }

// line returns the limit of the requests for a tag.
func (l *lines) line(tag string) *adaptive {
	if l.of != nil {
		if i := l.of(tag); i >= 0 {
			return l.all[i]
		}
	}
	return l.all[len(l.all)-1]
}

// slot returns the context of one request, whose release must be called.
func (l *lines) slot(ctx context.Context, tag string) *slot {
	s, _ := slots.Get().(*slot)
	s.Context, s.lines, s.tag = ctx, l, tag
	return s
}

// turns returns the error for a batch that must be rejected before it begins, nil if it may begin.
func (l *lines) turns(tag string) error {
	for _, a := range l.all {
		if a.crowded.Load() {
			if a = l.line(tag); a.turns(tag) {
				return a.refusal()
			}
			return nil
		}
	}
	return nil
}

func (l *lines) set(target time.Duration, most int) {
	for _, a := range l.all {
		a.set(target, most)
	}
}

// status is that of all lines together, with the limit of the one in which the fewest may wait.
func (l *lines) status() Waiting {
	sum := l.all[0].status()
	for _, a := range l.all[1:] {
		w := a.status()
		sum.Waiting += w.Waiting
		sum.Limit = min(sum.Limit, w.Limit)
		sum.Most = max(sum.Most, w.Most)
		sum.Rejected += w.Rejected
	}
	return sum
}
