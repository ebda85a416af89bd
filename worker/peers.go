package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// sampleSize is how many peers are asked for their time. With more, each minute of a
// cluster of N nodes would cost N*N questions.
const sampleSize = 8

// peerCheck is what the last comparison with the peers found.
type peerCheck struct {
	mu     sync.Mutex
	at     time.Time // zero: never
	passed time.Time // the last one without an objection
	Offsets

	// The loop's own: which peers are asked, and since when.
	seed  uint64
	drawn time.Duration // elapsed time
}

// compareClocks looks at the clock before a claim, with the eyes of the peers too. It
// returns leaf.ErrClock if this node must not start, and as unread why the registry did not
// tell who the peers are; then nothing may be claimed yet. It asks for peers before each claim
// until one answers: the peers may start later than this node.
func (h *Holder) compareClocks() (unread, err error) {
	now, elapsed := h.read()
	if err := h.clock.impossible(now); err != nil {
		h.cfg.Alarms.Raise(leaf.Alarm{
			Code: leaf.AlarmClock, Subject: clockSubject, Text: err.Error(),
			Do: setClockRight,
		})
		return nil, err
	}
	err = h.clock.look(now, elapsed)
	if err != nil || !h.checkedWithin(h.cfg.Clock.Interval, 1) {
		v := h.settle(h.cfg.Timeout)
		if v.unread != nil && h.registryLists() {
			v = h.settleAgain()
		}
		unread, err = v.unread, cmp.Or(v.objection, v.jump)
	}
	if err != nil {
		h.cfg.Alarms.Raise(leaf.Alarm{
			Code: leaf.AlarmClock, Subject: clockSubject, Text: err.Error(),
			Do: "compare the clocks of this node and of the peers named, and set right the one that is wrong; the node starts by itself then. If this node's clock is right after a jump, run: leaf worker confirm-clock",
		})
		return nil, err
	}
	h.cfg.Alarms.Clear(leaf.AlarmClock, clockSubject)
	return unread, nil
}

// registryLists reports whether the registry answers another question than that for the peers.
func (h *Holder) registryLists() bool {
	ctx, cancel := h.rt.WithTimeout(h.base, h.cfg.Timeout)
	defer cancel()
	_, err := h.reg.List(ctx)
	return err == nil
}

// settleAgain asks the peers once more, because the registry answers again. A registry that answers
// all but this question is like peers that do not answer: RefuseAlone decides.
func (h *Holder) settleAgain() verdict {
	v := h.settle(h.cfg.Timeout)
	if v.unread != nil && !h.cfg.Clock.RefuseAlone {
		h.log.Warn("the clock is not compared", "reason", fmt.Errorf("the list of peers cannot be read: %w", v.unread))
		v.unread = nil
	}
	return v
}

// recheck compares the clock of a running node, and raises an alarm beyond the
// threshold. It does not stop the node.
func (h *Holder) recheck() {
	if h.clock.jumped() == nil && h.checkedWithin(h.cfg.Clock.Interval, 0) {
		return
	}
	if objection := h.settle(h.cfg.aside()).objection; objection != nil {
		h.cfg.Alarms.Raise(leaf.Alarm{
			Code: leaf.AlarmClock, Subject: peersSubject, Text: objection.Error() + "; this node goes on issuing IDs",
			Do: "compare the clocks of this node and of the peers named, and set right the one that is wrong: slew it, do not step it",
		})
	}
}

// verdict is what the peers say about the clock. Each field is nil if all is well.
type verdict struct {
	objection error // theirs, to the clock as it is
	jump      error // the jump of the clock that is not believed
	unread    error // why the registry did not tell who the peers are
}

// settle asks the peers. The registry has within to say who they are. A jump is believed if
// most peers confirm it, and if none objects after it has stood for long: then a
// restart would believe it, too.
func (h *Holder) settle(within time.Duration) (v verdict) {
	now, elapsed := h.read() // before: what the clock does while the peers answer, they have not confirmed
	v.jump = h.clock.look(now, elapsed)
	var o Offsets
	if h.cfg.Clock.Ask != nil {
		if o, v.unread = h.ask(within); v.unread != nil {
			h.log.Debug("the list of peers cannot be read", "error", v.unread)
			return v
		}
		if v.objection = h.judge(o); v.objection != nil {
			return v
		}
	}
	by := "elapsed time: it has stood, and no peer objects"
	switch {
	case v.jump == nil:
		return v
	case o.confirm(h.cfg.Clock.Threshold):
		by = fmt.Sprintf("%d peers", o.Answered)
	case !h.clock.stood(elapsed):
		return v
	}
	if v.jump = h.believe(now, elapsed, by); v.jump == nil {
		v.jump = h.clock.look(h.read())
	}
	return v
}

// judge returns leaf.ErrClock, naming the offset and the peers, if the clock is too
// far from the median of the peers'.
func (h *Holder) judge(o Offsets) error {
	err := h.objection(o)
	if o.Answered > 0 {
		h.clock.judged(err == nil)
	}
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	switch h.peers.passed = h.peers.at; {
	case err != nil:
		h.peers.passed = time.Time{}
	case o.Answered > 0 || o.Asked == 0: // peers that do not answer have not said that the clock is right
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
	if o.Answered == 0 || o.Median.Abs() <= h.cfg.Clock.Threshold {
		return nil
	}
	where, by := "behind", o.Median
	if by < 0 {
		where, by = "ahead of", -by
	}
	return fmt.Errorf("%w: this node's clock is %v %s the median of the %d peers that answered, more than %v: %s", leaf.ErrClock,
		by.Round(time.Millisecond), where, o.Answered, h.cfg.Clock.Threshold, o)
}

// checkedWithin reports whether the peers were asked within d, so many of them answered, and they
// did not object, or whether they need not be asked.
func (h *Holder) checkedWithin(d time.Duration, answers int) bool {
	if h.cfg.Clock.Ask == nil {
		return true
	}
	now := h.rt.Now()
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	return !h.peers.passed.IsZero() && now.Sub(h.peers.passed).Abs() < d && h.peers.Answered >= answers
}

// peersSubject is the subject of alarms about the offset of a running node.
const peersSubject = "peers"

// sample returns the peers to ask: at most sampleSize of those that trust their clocks,
// and of those in the same doubt if this node's clock has jumped. They are drawn by chance, and the same ones for an interval, because with new ones at each attempt a
// wrong clock would find some day those that agree.
func (h *Holder) sample(all []Peer, anew bool) []Offset {
	_, elapsed := h.read()
	if c := &h.peers; anew || c.seed == 0 || elapsed-c.drawn >= h.cfg.Clock.Interval {
		c.seed, c.drawn = h.chance()<<32|h.chance(), elapsed
	}
	rank := func(p Peer) uint64 {
		f := fnv.New64a()
		fmt.Fprint(f, h.peers.seed, p.Clock)
		return f.Sum64()
	}
	jumped := h.clock.jumped() != nil
	var each []Offset
	for _, p := range all {
		var doubts bool
		p.Clock, doubts = strings.CutPrefix(p.Clock, Doubtful)
		if p.Clock != "" && p.Clock != h.cfg.Clock.Self && (jumped || !doubts) {
			each = append(each, Offset{Peer: p, Err: errors.New("not asked")})
		}
	}
	slices.SortFunc(each, func(a, b Offset) int { return cmp.Compare(rank(a.Peer), rank(b.Peer)) })
	each = each[:min(len(each), sampleSize)]
	slices.SortFunc(each, func(a, b Offset) int { return cmp.Compare(a.Peer.Address, b.Peer.Address) })
	return each
}

// ask asks a sample of the other announced processes for their time. If none of it
// answers, it asks another one. The registry has within to list them.
func (h *Holder) ask(within time.Duration) (Offsets, error) {
	ctx, cancel := h.rt.WithTimeout(h.base, within)
	defer cancel()
	all, err := h.reg.Peers(ctx)
	if err != nil {
		return Offsets{}, err
	}
	var o Offsets
	for range 2 { // a sample may consist of what has just crashed
		if o, err = h.askAll(h.sample(all, o.Asked > 0)); err != nil {
			return Offsets{}, err
		}
		if o.Answered > 0 || o.Asked < sampleSize {
			break
		}
	}
	now := h.rt.Now()
	h.peers.mu.Lock()
	h.peers.at, h.peers.Offsets = now, o
	h.peers.mu.Unlock()
	return o, nil
}

// askAll asks each, side by side.
func (h *Holder) askAll(each []Offset) (Offsets, error) {
	o := Offsets{Each: each}
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
	return o, nil
}

// askOne returns how far p's clock is ahead: its answer was true half a round trip
// before it arrived (Cristian's algorithm, 1989).
func (h *Holder) askOne(p Peer) (time.Duration, error) {
	ctx, cancel := h.rt.WithTimeout(h.base, h.cfg.Clock.Timeout)
	defer cancel()
	sent := h.rt.Now()
	theirs, err := h.askClock(ctx, p)
	if err != nil {
		return 0, err
	}
	half := h.rt.Now().Sub(sent) / 2
	return theirs.Round(0).Sub(sent.Round(0).Add(half)), nil
}

// askClock calls the function of the program.
func (h *Holder) askClock(ctx context.Context, p Peer) (time.Time, error) {
	return guardedCall(ctx, h.reg.guard, "Clock.Ask of "+p.Clock, func() (time.Time, error) { return h.cfg.Clock.Ask(ctx, p) })
}
