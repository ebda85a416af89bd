package sequence

import (
	"cmp"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Limits of a call and of a Config.
const (
	// MaxRequests is the largest number of requests in one batch. leaf.MaxEntities is smaller, because the messages
	// of a protocol are.
	MaxRequests = 10_000

	// MaxSkip is how far behind the end of its section an entity can be skipped to. A long skip costs
	// the other entities of the section a jump as long at the next change of owner.
	MaxSkip = leaf.MaxBatch

	// MostResident is the largest Config.MaxResident, 2 GB of positions.
	MostResident = 1 << 27
)

// Config tunes Positions. The zero value of each field means its default.
type Config struct {
	// Tag names the tag in the texts of errors.
	Tag string

	// Step is how many numbers a section reserves at once. A large one costs few writes: one each time that
	// the entity in front has used Step numbers. But all entities of a section jump by up to Step, and what the store
	// adds, at a change of owner. 1 to leaf.MaxBatch; default 1,000.
	Step int64

	// MaxResident is how many positions are in memory at most, 16 bytes each. Every section has an equal
	// part of it. Sections to MostResident; default 1,000,000.
	MaxResident int

	// MaxLoads is how many blocks one batch reserves at the same time. 1 to Sections; default 16.
	MaxLoads int

	// MaxWait is how long a call waits for a block if its context allows it to. 1 ms to 1 min; default 1 s.
	MaxWait time.Duration

	// Runtime is the clock and scheduler. Default: leaf.SystemRuntime.
	Runtime leaf.Runtime
}

// WithDefaults returns c with every zero field set to its default.
func (c Config) WithDefaults() Config {
	c.Step = cmp.Or(c.Step, 1000)
	c.MaxResident = cmp.Or(c.MaxResident, 1_000_000)
	c.MaxLoads = cmp.Or(c.MaxLoads, 16)
	c.MaxWait = cmp.Or(c.MaxWait, time.Second)
	if c.Runtime == nil {
		c.Runtime = leaf.SystemRuntime()
	}
	return c
}

// Validate returns leaf.ErrBadRequest if a field is outside its limits. New calls it after WithDefaults.
func (c Config) Validate() error {
	switch {
	case c.Step < 1 || c.Step > leaf.MaxBatch:
		return leaf.BadField("step", c.Step, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
	case c.MaxResident < Sections || c.MaxResident > MostResident:
		return leaf.BadField("max-resident", c.MaxResident, fmt.Sprintf("must be %d to %d", Sections, MostResident))
	case c.MaxLoads < 1 || c.MaxLoads > Sections:
		return leaf.BadField("max-loads", c.MaxLoads, fmt.Sprintf("must be 1 to %d", Sections))
	case c.MaxWait < time.Millisecond || c.MaxWait > time.Minute:
		return leaf.BadField("max-wait", c.MaxWait, fmt.Sprintf("must be %v to %v", time.Millisecond, time.Minute))
	}
	return nil
}
