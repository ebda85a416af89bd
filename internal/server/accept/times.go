package accept

import (
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Time is a duration in the Config of a server: 0 for the default, else Least or more.
type Time struct {
	Name         string
	Value, Least time.Duration
}

// CheckTimes returns leaf.ErrBadRequest, naming field, value and limit, for the first that is
// neither.
func CheckTimes(times ...Time) error {
	for _, t := range times {
		if t.Value != 0 && t.Value < t.Least {
			return leaf.BadField(t.Name, t.Value, fmt.Sprintf("must be %v or more, or 0 for the default", t.Least))
		}
	}
	return nil
}
