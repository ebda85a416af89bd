package snowflake

import (
	"context"
	"time"
)

// SetWord puts the generator where only very many goroutines at once could bring it.
func (g *Generator) SetWord(unit int64, counter uint64) {
	g.word.Store(uint64(unit)<<g.shift | counter)
}

// CounterMask returns the largest counter of the word.
func (g *Generator) CounterMask() uint64 { return g.mask }

// NewSleep returns a real Sleep of its own.
func NewSleep() func(context.Context, time.Duration) error { return new(sleeper).sleep }
