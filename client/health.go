package client

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

const (
	// checkEvery is the longest time between two health checks of a node; the shortest is half of it.
	checkEvery = 2 * time.Second

	// checkTimeout is how long a node may take to answer a health check.
	checkTimeout = time.Second

	// checkGap is the shortest time between two checks.
	checkGap = 100 * time.Millisecond

	// partingTime is how long a node that left the list may take to answer its last requests.
	partingTime = 5 * time.Second
)

// watch checks the node's health until listed ends, then closes the link once nothing is
// in flight any more, at once when root ends.
func (n *node) watch(root, listed context.Context) {
	defer n.link.Close()
	swept := n.rt.Now()
	for listed.Err() == nil {
		now := n.rt.Now()
		if rest := n.rest(now); rest > 0 {
			if n.rt.Wait(listed, n.kick, rest) != nil {
				break
			}
			continue
		}
		n.examine(listed)
		if now.Sub(swept) >= checkEvery { // checks of a suspect come one after the other, and its late answers must not be cut off
			n.link.Sweep()
			swept = now
		}
	}
	end := n.rt.Now().Add(partingTime)
	for n.inFlight.Load() > 0 && n.rt.Now().Before(end) {
		if n.rt.Wait(root, nil, lookAgain) != nil {
			return
		}
	}
}

// rest returns how long it is until the next check.
func (n *node) rest(now time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.due.Sub(now)
}

// lookLocked makes the next check come soon. An ejected node waits for the end of its
// ejection.
func (n *node) lookLocked() {
	soon := n.looked.Add(checkGap)
	if n.state == StateEjected || !soon.Before(n.due) {
		return
	}
	n.due = soon
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

// examine checks the node once.
func (n *node) examine(ctx context.Context) {
	if n.wasStuck() {
		n.link.Reset()
	}
	started := n.rt.Now()
	bounded, cancel := n.rt.WithTimeout(ctx, checkTimeout)
	err := n.link.Check(bounded)
	hung := err != nil && bounded.Err() != nil
	cancel()
	if ctx.Err() != nil {
		return
	}
	if isOwn(err) { // no check
		n.mu.Lock()
		n.looked, n.due = n.rt.Now(), n.rt.Now().Add(n.rt.Jitter(checkEvery))
		n.mu.Unlock()
		return
	}
	if n.judge(n.rt.Now(), started, err) && hung {
		n.link.Reset() // the other end may be gone without a word
	}
}

// wasStuck reports whether the client must replace the connection.
func (n *node) wasStuck() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.stuck
	n.stuck = false
	return was
}

// judge takes in the result of a check that began at started and returns whether the node is
// ejected. A check that fails is the failure that ejected the node if it began before that.
func (n *node) judge(now, started time.Time, err error) bool {
	n.foreign.Store(errors.Is(err, ErrOtherCluster))
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.state
	defer func() {
		if n.state != was {
			n.changed()
		}
	}()
	n.looked = now
	counted := n.state == StateEjected && !started.After(n.left)
	if err != nil && counted && !errors.Is(err, errNotServing) {
		return true
	}
	n.due = now.Add(n.rt.Jitter(checkEvery))
	switch {
	case errors.Is(err, errNotServing):
		n.state = StateDraining
	case err != nil:
		n.ejectLocked(now, err)
		return true
	default:
		n.state, n.why = StateUsable, nil
		if was == StateEjected || was == StateDraining {
			n.warm, n.row = now, 0
		} else if n.row == 0 && now.Sub(n.warm) > warmUp {
			n.ejections = 0
		}
	}
	if was != n.state && was != StateSuspect && was != StateUnknown {
		n.log.add(slog.LevelInfo, "node is "+n.state.String(), "node", n.info.Load().ID, "before", was.String())
	}
	return false
}
