package snowflake

import (
	"context"
	"sync/atomic"
	"time"
)

// The word, from the top: one bit "stopped", the unit (as wide as in the layout),
// the counter (the rest, wider than the sequence by a bit or more).
//
// Unit and counter name the next ID: the unit it belongs to and its sequence. A
// counter at or above the capacity says that the unit is used up. A counter of 0
// says that no ID of the unit was taken yet. That is so at the start only: the call that
// moves the word to a unit takes an ID of the unit in the same step.
//
// The word only grows: by the add of the fast path, by the compare-and-swap of the
// slow path to a larger value, by Stop. Each value between two words is handed to
// the one caller whose operation passed it, so no ID repeats and the order of the
// operations is the order of the IDs. What the fast path does between its load and
// its add, with other goroutines in between:
//
//   - Both load (u, 5), both add: one gets 5, the other 6.
//   - A loads (u, last); B takes it; A's add returns a counter at the capacity. The
//     capacity is compared after the add, so A takes nothing. The counter has room
//     for at least half a million goroutines in this state at once; one more would carry into
//     the unit, which is harmless but for the bound, which is compared after the add too.
//   - A loads (u, 5) and reads the clock, unit u; B moves the word to (u+1, s); A's add
//     returns (u+1, s). That ID belongs to A alone and lies in a unit that B's clock
//     has seen. A must build the ID, and compare the bound, from what the add returned,
//     not from what the clock said.
//   - A loads (u, 5); Stop swaps the word; A's add returns a stopped word, whose unit
//     is larger than any bound, so A takes nothing.
const stopped = 1 << 63

// Generator issues the IDs of one worker. All methods are safe for concurrent use.
type Generator struct {
	node     uint64 // datacentre and worker in their place
	capacity uint64 // IDs of one unit
	half     uint64 // of the capacity, rounded up: batches take no counter of a unit from here on
	small    uint64 // what a call may need at most to go past half
	mask     uint64 // of the counter
	shift    uint8  // of the unit in the word
	idShift  uint8  // of the unit in an ID
	epoch    int64  // Unix ms
	perUnit  int64  // ms
	spread   uint64 // a fresh unit starts below it; a power of two
	c        Config // with defaults

	bound   atomic.Int64          // in units; never falls
	granted atomic.Pointer[grant] // the last one of UseReserved, nil if there was none

	_    [64]byte // the word is written all the time, what is above is only read
	word atomic.Uint64
	_    [64]byte
}

// New returns a generator that has issued nothing. The error is an ErrInvalid
// that names the field, or an ErrOverflow if the floor lies past the layout's end.
func New(c Config) (*Generator, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	l := c.Layout
	g := &Generator{
		node:     uint64(c.Datacenter<<l.WorkerBits|c.Worker) << l.SequenceBits,
		capacity: 1 << l.SequenceBits,
		shift:    uint8(63 - l.TimeBits),
		idShift:  uint8(l.Bits() - l.TimeBits),
		epoch:    l.Epoch,
		perUnit:  l.perUnit(),
		c:        c,
	}
	g.mask = 1<<g.shift - 1
	g.half = (g.capacity + 1) / 2
	g.small = max(1, g.capacity/16)
	g.spread = startBelow(g.capacity)
	g.bound.Store(l.Ceil(c.Bound))
	g.word.Store(uint64(l.Ceil(c.Floor)) << g.shift)
	return g, nil
}

// Next returns one ID: unique among all generators with other workers, and larger
// than any ID that this generator issued before. It does not allocate.
//
// It waits if the unit is used up, until the next one, and if the clock is behind
// by at most the tolerance. ctx is looked at before a wait only; a wait that it
// ends gives ErrSaturated or ErrClock, together with the context's error.
// The other errors are ErrClock, ErrBound, ErrOverflow and ErrStopped.
func (g *Generator) Next(ctx context.Context) (int64, error) {
	// The clock is read after the word, so that a unit which another goroutine has
	// just begun does not look like a clock that is behind.
	w := g.word.Load()
	if g.unit(g.now()) == int64(w>>(g.shift&63)) && w&g.mask-1 < g.capacity-1 { // counter 1 to capacity-1
		w = g.word.Add(1) - 1
		if w>>(g.shift&63) < uint64(g.bound.Load()) && w&g.mask < g.capacity {
			return g.id(w), nil
		}
	}
	w, _, err := g.take(ctx, 1)
	if err != nil {
		return 0, err
	}
	return g.id(w), nil
}

// SetBound raises the bound to unixMilli, rounded up to a whole unit, and returns
// the one that holds then, in Unix milliseconds. It never lowers it.
func (g *Generator) SetBound(unixMilli int64) int64 {
	to := g.c.Layout.Ceil(unixMilli)
	for {
		b := g.bound.Load()
		if to <= b {
			return g.c.Layout.Millis(b)
		}
		if g.bound.CompareAndSwap(b, to) {
			return g.c.Layout.Millis(to)
		}
	}
}

// Bound returns the bound that holds, in Unix milliseconds, a whole unit.
func (g *Generator) Bound() int64 { return g.c.Layout.Millis(g.bound.Load()) }

// Stop ends issuing for good and returns the start of the first unit that no ID
// was taken from, in Unix milliseconds: the floor of a successor. It takes effect
// at once, also on calls that are under way: no ID is taken after it. Calling it
// again changes nothing and returns the same.
func (g *Generator) Stop() int64 {
	for {
		w := g.word.Load()
		p := g.position(w)
		if g.word.CompareAndSwap(w, stopped|uint64(p)<<g.shift) {
			return g.c.Layout.Millis(p)
		}
	}
}

// Position returns what Stop would return now: every ID so far has a unit that
// starts before it. Without any, it is the floor in whole units.
func (g *Generator) Position() int64 { return g.c.Layout.Millis(g.position(g.word.Load())) }

// Sequence returns how many sequence numbers of the unit that IDs were last taken from are
// gone, with those that the unit did not begin at, and how many a unit has.
func (g *Generator) Sequence() (gone, capacity int64) {
	return int64(min(g.word.Load()&g.mask, g.capacity)), int64(g.capacity)
}

// Behind returns how far the clock is behind the last ID, or behind the floor if
// there is none yet; 0 if it is not. More than the tolerance means that calls fail
// or, with UseReserved, that IDs are ahead of the clock.
func (g *Generator) Behind() time.Duration {
	at := int64(g.word.Load() &^ stopped >> g.shift)
	return max(0, g.until(at, g.now()))
}

// Layout returns the layout of the IDs.
func (g *Generator) Layout() Layout { return g.c.Layout }

// position returns the first unit that no ID was taken from.
func (g *Generator) position(w uint64) int64 {
	u := int64(w &^ stopped >> g.shift)
	if w&stopped != 0 || w&g.mask == 0 {
		return u
	}
	return u + 1
}

// id returns the ID that the word w names.
func (g *Generator) id(w uint64) int64 {
	return int64(w>>(g.shift&63)<<(g.idShift&63) | g.node | w&g.mask)
}
