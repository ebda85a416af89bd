package masters

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Engine issues the numbers of parts. *segment.Allocator is one.
type Engine interface {
	leaf.Issuer

	// Stocked reports whether a part has IDs in memory. If not, it asks for a range. It returns at once.
	Stocked(part string) bool
}

// Config tunes an Issuer. The zero value of each field means its default.
type Config struct {
	Near []string // names of databases, the nearest first; the others follow in the order of the tag rule

	// MaxWait is how long a call waits for IDs if its context allows it to; default 1 s. It should be the engine's.
	MaxWait time.Duration

	// Patience is how long a call waits for one database while another may answer. Too short moves tags to another
	// database for a slow load; too long lets calls fail for want of time. Default 100 ms.
	Patience time.Duration

	Runtime leaf.Runtime // nil: leaf.SystemRuntime
}

func (c Config) withDefaults() Config {
	c.MaxWait = cmp.Or(c.MaxWait, time.Second)
	c.Patience = cmp.Or(c.Patience, 100*time.Millisecond)
	if c.Runtime == nil {
		c.Runtime = leaf.SystemRuntime()
	}
	return c
}

// places returns Near as places in Router.Stores.
func (c Config) places(r *segment.Router) (near []int, err error) {
	for _, name := range c.Near {
		i := slices.IndexFunc(r.Stores(), func(s segment.NamedStore) bool { return s.Name == name })
		switch {
		case i < 0:
			return nil, leaf.BadField("near", name, "names no configured store")
		case slices.Contains(near, i):
			return nil, leaf.BadField("near", name, "is named twice")
		}
		near = append(near, i)
	}
	if c.MaxWait < 0 || c.Patience < 0 {
		return nil, leaf.BadField("waits", fmt.Sprint(c.MaxWait, ", ", c.Patience), "must not be negative")
	}
	return near, nil
}
