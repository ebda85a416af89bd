package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/owner"
)

// Remote takes calls to other nodes.
type Remote interface {
	// NextN asks the owner of a route for n IDs of a tag. Errors: of the table ([leaf.ClassOf]) in the
	// owner's words; leaf.ErrNotReady if there was no answer. It ends with ctx.
	NextN(ctx context.Context, to owner.Route, tag string, n int) ([]leaf.Range, error)

	// NextEach asks the owner of a route for numbers of a sequence, as leaf.Sequencer. Errors as of NextN, also those
	// of the results.
	NextEach(ctx context.Context, to owner.Route, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error)
}

// Config configures an Issuer.
type Config struct {
	Local  leaf.Issuer // the engine; its error for a tag that another node owns is an *owner.ElsewhereError
	Remote Remote
	Self   string // the address of this node in routes

	// Heard learns which IDs of a tag the owner has issued: those below end, and others. nil: it does not.
	Heard func(tag string, end int64)

	// Look reads from the registry who owns the tag now, or waits for the reading under way.
	Look func(ctx context.Context, tag string) error

	MaxWait    time.Duration // longest time of a call that another node must answer
	Attempt    time.Duration // longest wait for the answer of one owner
	MaxWaiting int           // most calls that wait for an owner at once; 0: any number
	Runtime    leaf.Runtime  // nil: leaf.SystemRuntime
}

// Issuer is the segment mode of a node with tags in strict order. All methods are safe for concurrent use.
type Issuer struct {
	cfg Config
	rt  leaf.Runtime

	lanes   lanes
	waiting waiting

	forwarded, failed atomic.Int64
}

// The pauses between two attempts of a call, which grow.
const (
	firstPause   = 5 * time.Millisecond
	longestPause = 100 * time.Millisecond
)

// New returns an Issuer.
func New(cfg Config) *Issuer {
	if cfg.Runtime == nil {
		cfg.Runtime = leaf.SystemRuntime()
	}
	i := &Issuer{cfg: cfg, rt: cfg.Runtime, lanes: lanes{by: map[lane]*queue{}, large: map[lane]*large{}}}
	i.SetMaxWaiting(cmp.Or(cfg.MaxWaiting, math.MaxInt))
	return i
}

// SetMaxWaiting replaces Config.MaxWaiting. Calls that wait go on to wait.
func (i *Issuer) SetMaxWaiting(most int) { i.waiting.most.Store(int64(most)) }

// Next implements leaf.Issuer.
func (i *Issuer) Next(ctx context.Context, tag string) (int64, error) {
	id, err := i.cfg.Local.Next(ctx, tag)
	if err == nil {
		return id, nil
	}
	got, err := i.follow(ctx, tag, 1, err)
	if err != nil {
		return 0, err
	}
	return got[0].Lo, nil
}

// NextN implements leaf.Issuer.
func (i *Issuer) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	got, err := i.cfg.Local.NextN(ctx, tag, n)
	if err == nil {
		return got, nil
	}
	return i.follow(ctx, tag, n, err)
}

// Forwarded returns how many calls other nodes have answered, be it with an error, and how many no owner has answered for
// as long as the caller waited, or might wait. A caller that leaves while the owner still has time to answer is in neither.
func (i *Issuer) Forwarded() (answered, failed int64) { return i.forwarded.Load(), i.failed.Load() }

// heard passes on what an owner has issued.
func (i *Issuer) heard(tag string, end int64) {
	if i.cfg.Heard != nil {
		i.cfg.Heard(tag, end)
	}
}

// follow goes on with a call that the engine refused with err: it takes the call to the owner, wherever that is
// by then.
func (i *Issuer) follow(ctx context.Context, tag string, n int, err error) (got []leaf.Range, _ error) {
	elsewhere, ok := errors.AsType[*owner.ElsewhereError](err)
	if !ok {
		return nil, err
	}
	leaf.Waits(ctx) // also an owner that answers may take a second, if it has no IDs
	ctx, cancel := i.rt.WithTimeout(ctx, i.cfg.MaxWait)
	defer cancel()
	place := place{of: &i.waiting}
	defer place.leave()
	missed := false
	for pause := time.Duration(0); ; pause = min(max(2*pause, firstPause), longestPause) {
		if to := elsewhere.Route; to.Address != "" && to.Address != i.cfg.Self {
			got, err = i.ask(ctx, to, tag, n)
			if err == nil {
				i.heard(tag, got[len(got)-1].Hi)
			}
			if !again(err) {
				i.forwarded.Add(1)
				return got, err
			}
		}
		missed = missed || ctx.Err() == nil
		if err := place.take(i.rt); err != nil {
			i.failed.Add(1)
			return nil, err
		}
		if pause > 0 && i.rt.Wait(ctx, nil, pause) != nil || i.cfg.Look(ctx, tag) != nil {
			if missed {
				i.failed.Add(1)
			}
			return nil, gaveUp(tag, err)
		}
		if got, err = i.cfg.Local.NextN(ctx, tag, n); err == nil {
			return got, nil
		}
		if elsewhere, ok = errors.AsType[*owner.ElsewhereError](err); !ok {
			return nil, err
		}
	}
}

// again reports whether another attempt may find another owner, or the same one in better health. A
// secret that is refused is that of a session before.
func again(err error) bool {
	return errors.Is(err, leaf.ErrNotReady) || errors.Is(err, leaf.ErrUnauthenticated)
}

// gaveUp returns the error of a call that has waited for as long as it could.
func gaveUp(tag string, said error) error {
	if errors.Is(said, leaf.ErrNotReady) {
		return fmt.Errorf("%w; no answer from an owner in time", said)
	}
	return fmt.Errorf("%w: tag %q is in strict order, and no owner of it has answered in time", leaf.ErrNotReady, tag)
}

// Here returns the issuer for calls that other nodes forward to this one. If this node does not own the tag, as
// far as it knows, it reads the registry once: the owner before may have given it the tag a moment ago.
func Here(local leaf.Issuer, look func(ctx context.Context, tag string) error) leaf.Issuer {
	return here{local, look}
}

type here struct {
	local leaf.Issuer
	look  func(ctx context.Context, tag string) error
}

func (h here) Next(ctx context.Context, tag string) (int64, error) {
	id, err := h.local.Next(ctx, tag)
	if h.looked(ctx, tag, err) {
		return h.local.Next(ctx, tag)
	}
	return id, err
}

func (h here) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	got, err := h.local.NextN(ctx, tag, n)
	if h.looked(ctx, tag, err) {
		return h.local.NextN(ctx, tag, n)
	}
	return got, err
}

// looked reports whether the call may be tried again, with what the registry says now.
func (h here) looked(ctx context.Context, tag string, err error) bool {
	if err == nil {
		return false
	}
	_, elsewhere := errors.AsType[*owner.ElsewhereError](err)
	return elsewhere && h.look(ctx, tag) == nil
}
