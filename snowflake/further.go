package snowflake

import (
	"fmt"
	"slices"
)

// ParseFurther returns main and behind it the layouts that texts name, which one worker ID
// may serve beside it: they differ from it and from one another, because two generators of one
// layout and worker ID repeat IDs, and all have a datacentre, or none has. Every error is an
// ErrInvalid.
func ParseFurther(main Layout, texts []string) ([]Layout, error) {
	all := []Layout{main}
	for _, text := range texts {
		l, err := ParseLayout(text)
		switch {
		case err != nil:
			return nil, err
		case slices.Contains(all, l):
			return nil, invalid("layouts", quote(text), "must differ from the layout and from one another")
		case (l.DatacenterBits > 0) != (main.DatacenterBits > 0):
			return nil, invalid("layouts", quote(text), fmt.Sprintf("must have the field datacenter if and only if the layout has it (%d bits): without it, datacentres repeat the IDs of one another", main.DatacenterBits))
		}
		all = append(all, l)
	}
	return all, nil
}
