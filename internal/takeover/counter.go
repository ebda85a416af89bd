package takeover

import "context"

// Source reads the counters of another ID service from its database. It never writes there.
type Source interface {
	// Counters returns the counters with these names, all of them without names. A name that
	// the service does not have is missing in the answer. A counter that cannot be read has a
	// Problem; an error means that nothing is known.
	Counters(ctx context.Context, names ...string) ([]Counter, error)

	Close() error
}

// Counter is where another service takes its numbers from: a row of its table, or a sequence.
type Counter struct {
	Name  string `json:"name"`  // as that service calls it
	From  string `json:"from"`  // its database, without a password
	State string `json:"state"` // what was read, for people

	// End is above every number that the service had handed out when the counter was read,
	// also to caches and to transactions that were not committed.
	End int64 `json:"end,string"`

	// Filled is above every number in the table that the service numbers, 0 if it numbers
	// none: rows that were inserted with a number of their own are not in End.
	Filled int64 `json:"filled,string,omitempty"`

	// Margin is how far open transactions and other servers of a cluster can be above End.
	Margin int64 `json:"margin,string,omitempty"`

	// Step is how many numbers the service reserves at a time, 0 if its table does not say.
	Step int64 `json:"step,omitempty"`

	// The service hands out the numbers n with n mod Modulus = Residue. Modulus 0: all.
	Modulus int64 `json:"modulus,omitempty"`
	Residue int64 `json:"residue,omitempty"`

	// Follows says that the counter moves above every number that is inserted, whichever
	// program made the number. Such a counter cannot go on beside another one.
	Follows bool `json:"follows,omitempty"`

	// Problem is why the counter cannot be used, "" if it can.
	Problem string `json:"problem,omitempty"`

	// Unchecked is the version of the service's server if that takes a CHECK and ignores it, ""
	// if not. No statement makes the service fail at a number then.
	Unchecked string `json:"unchecked,omitempty"`

	// Stop returns the statement after which the other service hands out no number from first
	// on: it gets an error instead. "": none is needed, or none is known.
	Stop func(first int64) string `json:"-"`
}

// Moved returns the counters from which numbers were taken between the readings before and now.
// When a cache of the database hands out the numbers, End does not change, but Filled rises.
func Moved(before, now []Counter) (moved []Counter) {
	type key struct{ from, name string }
	was := map[key]Counter{}
	for _, c := range before {
		was[key{c.From, c.Name}] = c
	}
	for _, c := range now {
		if b, known := was[key{c.From, c.Name}]; known && (c.End != b.End || c.Filled > b.Filled) {
			moved = append(moved, c)
		}
	}
	return moved
}
