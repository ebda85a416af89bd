package worker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
)

// layouts returns Layout and behind it those of Layouts, or leaf.ErrBadRequest.
func (c Config) layouts() ([]snowflake.Layout, error) {
	all, err := snowflake.ParseFurther(c.Layout, c.Layouts)
	if err != nil {
		return nil, fmt.Errorf("%w: layouts: %w", leaf.ErrBadRequest, err)
	}
	for i, l := range all[1:] {
		if most := int64(1)<<l.WorkerBits - 1; c.Numbers.Hi-1 > most {
			return nil, leaf.BadField("worker-range", fmt.Sprintf("%d-%d", c.Numbers.Lo, c.Numbers.Hi-1), fmt.Sprintf("must lie within 0-%d, the workers of the layout %s", most, c.Layouts[i]))
		}
		if most := int64(1)<<l.DatacenterBits - 1; c.datacenter() > most {
			return nil, leaf.BadField("datacenter", c.datacenter(), fmt.Sprintf("must be 0 to %d in the layout %s", most, c.Layouts[i]))
		}
	}
	return all, nil
}

// common returns the time in which all layouts have IDs, half-open: in no other time is a number
// claimed, or a bound raised.
func common(layouts []snowflake.Layout) (first, end time.Time) {
	first, end = time.UnixMilli(layouts[0].Epoch).UTC(), layouts[0].End()
	for _, l := range layouts[1:] {
		if at := time.UnixMilli(l.Epoch).UTC(); at.After(first) {
			first = at
		}
		if at := l.End(); at.Before(end) {
			end = at
		}
	}
	return first, end
}

// generators are those of one claim session, one for each layout, all with its worker ID.
//
// What makes IDs unique within each layout is one floor and one bound, in milliseconds, for all of
// them. The generator of each layout rounds both up to its own units. So the successor's begins with
// the unit at which the predecessor's ended, also where the bound lies within a unit.
type generators struct {
	all   []*snowflake.Generator // that of Config.Layout first
	texts []string               // of the others
}

// newGenerators returns a generator of each layout; the rest of c is the same for all.
func newGenerators(c snowflake.Config, layouts []snowflake.Layout, texts []string) (generators, error) {
	g := generators{texts: texts}
	for _, l := range layouts {
		c.Layout = l
		one, err := snowflake.New(c)
		if err != nil {
			return g, err
		}
		g.all = append(g.all, one)
	}
	return g, nil
}

// of returns the generator that a key chooses. A key that is a layout which is not served is
// leaf.ErrBadRequest: its client could take IDs of another layout for those that it has asked for.
func (g *generators) of(key string) (*snowflake.Generator, error) {
	if len(g.texts) == 0 {
		return g.all[0], nil
	}
	if i := slices.Index(g.texts, key); i >= 0 {
		return g.all[i+1], nil
	}
	name, _, fields := strings.Cut(key, ",")
	if _, preset := snowflake.Preset(strings.TrimSpace(name)); !preset && !fields {
		return g.all[0], nil
	}
	l, err := snowflake.ParseLayout(key)
	for _, one := range g.all {
		if err == nil && one.Layout() == l {
			return one, nil
		}
	}
	return nil, leaf.BadField("key", key, "reads as a layout that this node does not serve; it serves snowflake.layout and "+strings.Join(g.texts, "; ")+" (snowflake.layouts)")
}

// SetBound raises the bound of every generator.
func (g *generators) SetBound(unixMilli int64) {
	for _, one := range g.all {
		one.SetBound(unixMilli)
	}
}

// Stop ends issuing for good, and returns the floor of a successor.
func (g *generators) Stop() int64 { return g.furthest((*snowflake.Generator).Stop) }

// Position returns what Stop would return now.
func (g *generators) Position() int64 { return g.furthest((*snowflake.Generator).Position) }

// furthest returns the floor behind every used unit of every generator, by end, which says where those
// of one generator end. It is a whole unit of Config.Layout, as T is, and not above T. So of a further
// layout it is 1 ms after its last used unit has begun, rounded up: the end of that unit can lie beyond T.
func (g *generators) furthest(end func(*snowflake.Generator) int64) int64 {
	floor := end(g.all[0])
	for _, one := range g.all[1:] {
		floor = max(floor, end(one)-one.Layout().Unit.Milliseconds()+1)
	}
	if len(g.all) == 1 {
		return floor
	}
	main := g.all[0].Layout()
	return main.Millis(main.Ceil(floor))
}

// from returns the moment from which every generator can issue: floor, or where the unit ends that floor
// lies in. New generators only.
func (g *generators) from(floor int64) int64 {
	for _, one := range g.all[1:] {
		floor = max(floor, one.Position())
	}
	return floor
}

// Sequence is that of the generator of Config.Layout.
func (g *generators) Sequence() (gone, capacity int64) { return g.all[0].Sequence() }
