package client

import "time"

const (
	// A lane shuns a node for firstShun, and twice as long each time the node refuses it
	// again, up to longestShun.
	firstShun   = time.Second
	longestShun = 30 * time.Second
)

// shun is why a lane asks other nodes first: this one has refused it, or, of a sequence, has not answered in time. That says
// nothing about other lanes, so it says nothing about the node.
type shun struct {
	until time.Time
	times int
}

// shun notes that n has refused the lane.
func (l *lane) shun(n *node, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shunned == nil {
		l.shunned = make(map[*node]shun)
	}
	s := l.shunned[n]
	if now.Before(s.until) {
		return // another request has said so
	}
	s.until = now.Add(l.rt.Jitter(min(2*firstShun<<min(s.times, 10), longestShun)))
	s.times++
	l.shunned[n] = s
}

// others returns except and the nodes that the lane shuns.
func (l *lane) others(now time.Time, except []*node) []*node {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.shunned) == 0 {
		return except
	}
	except = append([]*node(nil), except...)
	for n, s := range l.shunned {
		switch {
		case now.Before(s.until):
			except = append(except, n)
		case now.Sub(s.until) > longestShun:
			delete(l.shunned, n) // it may have left the list
		}
	}
	return except
}
