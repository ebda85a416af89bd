package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// peerCheck is what the last comparison with the peers found.
type peerCheck struct {
	mu     sync.Mutex
	at     time.Time // zero: never
	passed time.Time // the last one without an objection
	Offsets
}

// Offsets is a comparison of clocks: how far the peers are ahead of this node.
type Offsets struct {
	Asked, Answered int
	Mean, Median    time.Duration
	Each            []Offset // by address
}

// Offset is one peer's.
type Offset struct {
	Peer  Peer
	Ahead time.Duration
	Err   error // it did not answer
}

// compareClocks asks the peers before a claim. It returns leaf.ErrClock if this node
// must not start. A registry that does not answer is the claim's business.
func (h *Holder) compareClocks() error {
	err := h.clock.look(h.read())
	if h.cfg.Clock.Ask != nil && (err != nil || !h.checkedWithin(h.cfg.Clock.Interval)) {
		err = h.askBeforeStart(err)
	}
	if err != nil {
		h.cfg.Alarms.Raise(leaf.Alarm{
			Code: leaf.AlarmClock, Subject: clockSubject, Text: err.Error(),
			Do: "set the clock right; the node starts by itself then. If it is right after a jump, run: leaf worker confirm-clock",
		})
		return err
	}
	h.cfg.Alarms.Clear(leaf.AlarmClock, clockSubject)
	return nil
}

// askBeforeStart asks the peers, who can also refute a jump.
func (h *Holder) askBeforeStart(jump error) error {
	now, elapsed := h.read() // before: what the clock does while the peers answer, they have not confirmed
	o, err := h.ask()
	if err != nil {
		h.log.Debug("no list of peers", "error", err)
		return jump
	}
	if err := h.judge(o); err != nil {
		return err
	}
	if jump != nil && o.Answered > 0 {
		h.believe(now, elapsed)
		return h.clock.look(h.read())
	}
	return jump
}

// judge returns leaf.ErrClock, naming the offset and the peers, if the clock is too
// far from the mean of the peers'.
func (h *Holder) judge(o Offsets) error {
	err := h.objection(o)
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	if h.peers.passed = h.peers.at; err != nil {
		h.peers.passed = time.Time{}
	} else {
		h.cfg.Alarms.Clear(leaf.AlarmClock, peersSubject) // also while no number is held
	}
	return err
}

func (h *Holder) objection(o Offsets) error {
	if o.Asked > 0 && o.Answered == 0 {
		err := fmt.Errorf("%w: none of %d peers tells its time: %s", leaf.ErrClock, o.Asked, o)
		if h.cfg.Clock.RefuseAlone {
			return err
		}
		h.log.Warn("the clock is not compared", "reason", err)
		return nil
	}
	if o.Answered == 0 || o.Mean.Abs() <= h.cfg.Clock.Threshold {
		return nil
	}
	where, by := "behind", o.Mean
	if by < 0 {
		where, by = "ahead of", -by
	}
	return fmt.Errorf("%w: this node's clock is %v %s the mean of its %d peers, more than %v (median %v): %s", leaf.ErrClock,
		by.Round(time.Millisecond), where, o.Answered, h.cfg.Clock.Threshold, (-o.Median).Round(time.Millisecond), o)
}

// String lists the peers with this node's offset to each.
func (o Offsets) String() string {
	var parts []string
	for _, e := range o.Each {
		if e.Err != nil {
			parts = append(parts, fmt.Sprintf("%s no answer (%v)", e.Peer.Address, e.Err))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %+.3f s", e.Peer.Address, -e.Ahead.Seconds()))
	}
	return strings.Join(parts, ", ")
}

func (h *Holder) checkedWithin(d time.Duration) bool {
	now := h.rt.Now()
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	return !h.peers.passed.IsZero() && now.Sub(h.peers.passed).Abs() < d
}

// recheck compares the clock of a running node, raises an alarm beyond the threshold
// and lets peers confirm a clock that has jumped. It does not stop the node.
func (h *Holder) recheck() {
	jumped := h.clock.jumped() != nil
	if h.cfg.Clock.Ask == nil || !jumped && h.checkedWithin(h.cfg.Clock.Interval) {
		return
	}
	now, elapsed := h.read()
	o, err := h.ask()
	if err != nil {
		return
	}
	if err := h.judge(o); err != nil {
		h.cfg.Alarms.Raise(leaf.Alarm{Code: leaf.AlarmClock, Subject: peersSubject, Text: err.Error(), Do: "set the clock right: slew it, do not step it"})
		return
	}
	if jumped && o.Answered > 0 {
		h.log.Info("the peers refute a jump of the clock", "peers", o.Answered)
		h.believe(now, elapsed)
	}
}

// peersSubject is the subject of alarms about the offset of a running node.
const peersSubject = "peers"

// ask asks all other announced processes for their time, side by side.
func (h *Holder) ask() (Offsets, error) {
	ctx, cancel := h.rt.WithTimeout(h.base, h.cfg.Timeout)
	defer cancel()
	all, err := h.reg.Peers(ctx)
	if err != nil {
		return Offsets{}, err
	}
	o := Offsets{}
	for _, p := range all {
		if p.Clock != "" && p.Clock != h.cfg.Clock.Self {
			o.Each = append(o.Each, Offset{Peer: p, Err: errors.New("not asked")})
		}
	}
	slices.SortFunc(o.Each, func(a, b Offset) int { return cmp.Compare(a.Peer.Address, b.Peer.Address) })
	done := make(chan struct{})
	var left atomic.Int64
	left.Store(int64(len(o.Each)) + 1)
	finish := func() {
		if left.Add(-1) == 0 {
			close(done)
		}
	}
	for i := range o.Each {
		h.rt.Go(func() {
			defer finish()
			o.Each[i].Ahead, o.Each[i].Err = h.askOne(o.Each[i].Peer)
		})
	}
	finish()
	if err := h.rt.Wait(context.Background(), done, 0); err != nil { // each has its deadline
		return Offsets{}, err
	}
	o.sum()
	now := h.rt.Now()
	h.peers.mu.Lock()
	h.peers.at, h.peers.Offsets = now, o
	h.peers.mu.Unlock()
	return o, nil
}

// askOne returns how far p's clock is ahead: its answer was true half a round trip
// before it arrived (Cristian's algorithm, 1989).
func (h *Holder) askOne(p Peer) (time.Duration, error) {
	ctx, cancel := h.rt.WithTimeout(h.base, h.cfg.Clock.Timeout)
	defer cancel()
	sent := h.rt.Now()
	theirs, err := h.cfg.Clock.Ask(ctx, p)
	if err != nil {
		return 0, err
	}
	half := h.rt.Now().Sub(sent) / 2
	return theirs.Round(0).Sub(sent.Round(0).Add(half)), nil
}

// sum computes mean and median of those that answered.
func (o *Offsets) sum() {
	var ahead []time.Duration
	for _, e := range o.Each {
		if e.Err == nil {
			ahead = append(ahead, e.Ahead)
		}
	}
	o.Asked, o.Answered = len(o.Each), len(ahead)
	if len(ahead) == 0 {
		return
	}
	slices.Sort(ahead)
	o.Mean = mean(ahead...)
	o.Median = mean(ahead[(len(ahead)-1)/2], ahead[len(ahead)/2])
}

// mean divides before it adds: two answers from far off would overflow, and their mean
// look as if all were well.
func mean(of ...time.Duration) time.Duration {
	n := time.Duration(len(of))
	var whole, rest time.Duration
	for _, d := range of {
		whole += d / n
		rest += d % n
	}
	return whole + rest/n
}
