package sim

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/worker"
)

// holder is a worker.Holder in one process, with its clients.
type holder struct {
	*worker.Holder

	mode     *snowflakeMode
	node     *claimant
	side     *side
	proc     *sched.Process
	life     int
	alarms   alarmBoard
	stopping bool
	startErr error // of Start: an operator must act
	stray    bool  // has another layout
	began    time.Duration

	rescued  int
	boot     time.Duration // how far the clock was ahead when it was believed: at the first look, by an operator, or because it stood
	looked   bool
	resumed  string          // nonce of the claim that it went on with from its file, "" if none
	named    bool            // its file names a nonce of this process
	believes func()          // called when it goes on from a file that is not the node's last one; nil: it has the last one, or was called
	unused   map[int64]int   // by number: how often the registry was wiped when this process claimed it and it had no T, else -1
	floors   map[int64]int64 // by number: the floor of the last claim of this process, ms
}

// by returns what made the calls of a process.
func (c *claimant) by(p *sched.Process) *holder {
	for _, e := range c.ended {
		if e.proc == p {
			return e
		}
	}
	return c.now
}

// start implements engine. Clients do not wait for the engine.
func (e *holder) start(ctx context.Context) {
	e.proc.Go(func() { e.serve(1, 2*time.Second, 25*time.Second) })
	e.proc.Go(func() { e.serve(1000, 10*time.Second, 50*time.Second) })
	if err := e.Start(ctx); err != nil && !e.stopping {
		e.mode.w.sched.Note(e.node.Name, "snowflake mode does not start: "+err.Error())
		e.startErr = err
	}
}

// stop implements engine.
func (e *holder) stop(ctx context.Context) {
	e.stopping = true
	if err := e.Close(ctx); err != nil {
		e.mode.w.sched.Note(e.node.Name, "snowflake mode stops: "+err.Error())
	}
}

// enough is how many IDs a run needs; from there on batches are small.
const enough = 15_000

// serve is a client that asks again soon after an error.
func (e *holder) serve(most int, least, longest time.Duration) {
	rng := e.mode.w.rng
	var last latest
	for errors := 0; !e.stopping; {
		pause := least + time.Duration(rng.Int64N(int64(longest-least)))
		if errors > 0 && errors%16 < 8 {
			pause = time.Duration(1+rng.IntN(800)) * time.Millisecond
		}
		e.proc.Sleep(pause)
		count := 1 + rng.IntN(most)
		if e.mode.w.ledger.count > enough {
			count = 1 + rng.IntN(min(most, 50))
		}
		if e.take(count, &last) == nil {
			errors = 0
		} else {
			errors++
		}
	}
}

// rush makes all nodes issue at the same moments of the next minute: what two of them
// may both issue, they shall.
func (m *snowflakeMode) rush() {
	for range 6 {
		m.w.sched.After(m.w.upTo(time.Minute), func() {
			for _, c := range m.nodes {
				if e := c.now; c.Up() && e.proc == c.Proc && !e.stopping {
					count := 1 + m.w.rng.IntN(100)
					e.proc.Go(func() { _ = e.take(count, &latest{}) })
				}
			}
		})
	}
}

// grace is how long a call may outlive its deadline.
const grace = 2 * time.Second

// take asks for IDs once.
func (e *holder) take(count int, last *latest) error {
	s := e.mode.w.sched
	const limit = 2 * time.Second
	ctx, cancel := e.proc.WithTimeout(context.Background(), limit)
	defer cancel()
	begin, stood := s.Elapsed(), e.proc.Stood()
	var ids []leaf.Range
	var err error
	if count == 1 {
		var id int64
		id, err = e.Next(ctx, "key")
		ids = []leaf.Range{{Lo: id, Hi: id + 1}}
	} else {
		ids, err = e.NextN(ctx, "key", count)
	}
	if took := s.Elapsed() - begin - (e.proc.Stood() - stood); took > limit+grace {
		e.mode.w.Failf("%s: a call with a deadline of %v took %v", e.node.Name, limit, took)
	}
	if err != nil {
		return err
	}
	e.mode.took(e, ids, last)
	return nil
}

// alarmBoard holds the alarms of a process. Engines run one at a time here.
type alarmBoard struct{ active []leaf.Alarm }

// Raise implements leaf.Alarms.
func (b *alarmBoard) Raise(a leaf.Alarm) {
	if a.Code == leaf.AlarmExhausted && a.Subject == "worker IDs" {
		return // true of the few numbers of a side, and no fault of a run
	}
	i, found := b.find(a.Code, a.Subject)
	if found {
		b.active[i] = a
		return
	}
	b.active = slices.Insert(b.active, i, a)
}

// Clear implements leaf.Alarms.
func (b *alarmBoard) Clear(code, subject string) {
	if i, found := b.find(code, subject); found {
		b.active = slices.Delete(b.active, i, i+1)
	}
}

func (b *alarmBoard) find(code, subject string) (int, bool) {
	return slices.BinarySearchFunc(b.active, leaf.Alarm{Code: code, Subject: subject}, func(a, want leaf.Alarm) int {
		return cmp.Or(cmp.Compare(a.Code, want.Code), cmp.Compare(a.Subject, want.Subject))
	})
}

// says reports whether an alarm of that code with a text is active.
func (b *alarmBoard) says(code, text string) bool {
	return slices.ContainsFunc(b.active, func(a leaf.Alarm) bool { return a.Code == code && strings.Contains(a.Text, text) })
}

// has reports whether an alarm of that code is active.
func (b *alarmBoard) has(code string) bool {
	return slices.ContainsFunc(b.active, func(a leaf.Alarm) bool { return a.Code == code })
}
