package client

import (
	"slices"
	"time"
)

const (
	// A lane shuns a node for firstShun, and twice as long each time the node refuses it
	// again, up to longestShun.
	firstShun   = time.Second
	longestShun = 30 * time.Second

	// longestAway is how long a refusal keeps a lane out of its zone: one now and then costs less than to stay away.
	longestAway = 3 * time.Second
)

// shun is why a lane asks other nodes first: this one has refused it, or, of a sequence, has not answered in time. That says
// nothing about other lanes, so it says nothing about the node.
type shun struct {
	last  time.Time // that the node has refused
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
	switch {
	case now.Sub(s.last) < firstShun:
		return // another request has said so
	case now.Before(s.until): // it was asked for want of others, so its shun does not grow
		if soon := now.Add(longestAway); soon.After(s.until) {
			s.until = soon
		}
	default:
		s.until = now.Add(l.rt.Jitter(min(2*firstShun<<min(s.times, 10), longestShun)))
		s.times++
	}
	s.last = now
	l.shunned[n] = s
}

// others returns except, and of the nodes that the lane shuns those that have refused it less than most ago.
func (l *lane) others(now time.Time, except []*node, most time.Duration) []*node {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.shunned) == 0 {
		return except
	}
	except = append([]*node(nil), except...)
	for n, s := range l.shunned {
		switch {
		case now.Before(s.until) && now.Sub(s.last) < most:
			except = append(except, n)
		case now.Sub(s.until) > longestShun:
			delete(l.shunned, n) // it may have left the list
		}
	}
	return except
}

// pick chooses a node that was not tried in this round, one that the lane shuns only if there is no other that works. The
// owner that r knows comes first: of a sequence, it takes what it does not own itself to other owners, as every node does.
func (l *lane) pick(now time.Time, r *routing, tried []*node, hedge bool) (_ *node, remote bool) {
	nodes := &l.client.nodes
	others := l.others(now, tried, longestShun)
	if n := r.owner(l.client.members, now); n != nil && !slices.Contains(others, n) {
		return n, false
	}
	if len(others) == len(tried) {
		return nodes.pick(now, tried, hedge)
	}
	n, remote := nodes.pick(now, others, true)
	if remote {
		n, remote = nodes.pick(now, l.others(now, tried, longestAway), true)
	}
	if n == nil {
		return nodes.pick(now, tried, hedge)
	}
	return n, remote
}
