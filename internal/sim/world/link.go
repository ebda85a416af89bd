package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim/sched"
)

// Errors of a Link.
var (
	ErrUnreachable = errors.New("world: connection refused")
	ErrConnLost    = errors.New("world: connection lost")
	ErrPanic       = errors.New("world: the driver panics")
)

// Server is where the effects of calls happen.
type Server struct {
	Name string
	Down bool // connections are refused, and requests on their way get no answer
}

// Link is one process's way to one server. Its fields may change at any time.
type Link struct {
	Server *Server
	Faults *Faults

	// Latency of each direction lies in [Latency/2, Latency). Default 1 ms.
	Latency time.Duration

	// Cut: neither direction gets through, and no error says so. CutRequests and CutReplies
	// are a partition of one direction.
	CutRequests bool
	CutReplies  bool

	// Chances, each 0 to 1, per call.
	LoseRequest float64 // the request vanishes
	LoseReply   float64 // the effect happens, the connection breaks before the reply
	Late        float64 // the request arrives up to LateBy later, when the caller may have given up
	Twice       float64 // a repeatable request arrives a second time, up to LateBy later

	// Panic is the chance that the driver panics in a call: half of them before the request
	// leaves, half of them when a reply without an error is there. Dice decides, so that a
	// link that never panics draws nothing.
	Panic float64
	Dice  *rand.Rand

	// HoldReply makes the next reply so much later. The effect of the call may set it.
	HoldReply time.Duration

	// LateBy bounds the delay of late and doubled requests. Default 2 min.
	LateBy time.Duration
}

// Cut makes both directions silent, or heals them.
func (l *Link) Cut(cut bool) { l.CutRequests, l.CutReplies = cut, cut }

// Once says whether the server side of a call may happen twice.
type Once bool

// The two values of Once.
const (
	Repeatable Once = false // a proxy or driver may send it again (segment.Store.Reserve)
	AtMostOnce Once = true  // it must not (segment.Store.ReturnUnused)
)

// Call sends a request to the link's server and waits for the reply until ctx ends.
// effect runs at the server, at one moment, and must not wait; it runs after the
// caller has died or given up if the request was on its way. After an error other
// than effect's own, and after a panic, the caller cannot tell whether it ran.
func Call[T any](ctx context.Context, p *sched.Process, l *Link, what string, once Once, effect func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	p.MayDie()
	if draw(l.Dice, l.Panic/2) {
		l.Faults.Hit(PanicBefore)
		panic(ErrPanic)
	}
	s, rng := p.Scheduler(), p.Scheduler().Rand()
	if l.Server.Down {
		l.Faults.Hit(ServerDown)
		_ = p.Wait(ctx, nil, l.way(rng.Int64N)) // the refusal travels too
		return none, fmt.Errorf("%s: %s: %w", what, l.Server.Name, ErrUnreachable)
	}
	type answer struct {
		value T
		err   error
	}
	var reply answer
	done := make(chan struct{})
	answered := false
	answerWith := func(a answer) {
		if !answered {
			answered, reply = true, a
			close(done)
		}
	}
	arrive := func() {
		if l.Server.Down {
			return // the connection died with the server; the caller's deadline tells
		}
		s.Note(p.Name(), what)
		value, err := effect()
		lose := draw(rng, l.LoseReply)
		if lose {
			l.Faults.Hit(ReplyLost)
			value, err = none, fmt.Errorf("%s: %s: %w", what, l.Server.Name, ErrConnLost)
		}
		hold := l.HoldReply
		l.HoldReply = 0
		p.After(hold+l.way(rng.Int64N), func() {
			if l.CutReplies {
				l.Faults.Hit(CutOff)
				return
			}
			answerWith(answer{value, err})
		})
	}
	delay := l.way(rng.Int64N)
	switch {
	case l.CutRequests:
		l.Faults.Hit(CutOff)
	case draw(rng, l.LoseRequest):
		l.Faults.Hit(RequestLost)
	case draw(rng, l.Late):
		l.Faults.Hit(CallDelayed)
		s.After(delay+time.Duration(rng.Int64N(int64(l.lateBy()))), arrive)
	default:
		s.After(delay, arrive)
		if once == Repeatable && draw(rng, l.Twice) {
			l.Faults.Hit(CallDoubled)
			s.After(delay+time.Duration(rng.Int64N(int64(l.lateBy()))), arrive)
		}
	}
	err := p.Wait(ctx, done, 0)
	p.MayDie()
	if err != nil {
		return none, fmt.Errorf("%s: %s: %w", what, l.Server.Name, err)
	}
	if reply.err == nil && draw(l.Dice, l.Panic/2) {
		l.Faults.Hit(PanicAfter)
		panic(ErrPanic)
	}
	return reply.value, reply.err
}

// way returns how long one direction takes.
func (l *Link) way(below func(int64) int64) time.Duration {
	d := l.Latency
	if d <= 0 {
		d = time.Millisecond
	}
	return d/2 + time.Duration(below(int64(d/2)+1))
}

func (l *Link) lateBy() time.Duration {
	if l.LateBy > 0 {
		return l.LateBy
	}
	return 2 * time.Minute
}
