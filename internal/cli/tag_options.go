package cli

import (
	"fmt"
	"strconv"

	"github.com/leaf-idgen/leaf/internal/manage"
)

// newOptions are segment.Options as flags.
type newOptions struct {
	MinStep   int64 `placeholder:"N" help:"Lower bound of the dynamic step. (default: the step)"`
	MaxStep   int64 `placeholder:"N" help:"Upper bound of the dynamic step. (default: segment.max-step of the node)"`
	FixedStep bool  `help:"Every range has exactly the step's length."`

	Format string `placeholder:"TEMPLATE" help:"How people read the IDs, such as INV-{seq:08}: docs/NUMBERS.md. Clients get it with format=text."`
	Order  string `placeholder:"ORDER" help:"plain: every node issues, from ranges of its own. strict: one node at a time issues the tag, so that a request that begins after the answer of another one gets a larger ID. (default plain)"`

	Period     string `placeholder:"PERIOD" help:"Numbers begin at 1 again in each day, month or year. A format shows the period, such as INV-{yyyyMMdd}-{seq:06}: docs/NUMBERS.md. It cannot be changed later. (default none)"`
	PeriodZone string `placeholder:"ZONE" help:"Time zone of the period, such as Europe/Berlin. (default UTC)"`
}

// tagChange is segment.Change as flags.
type tagChange struct {
	MaxID       *int64  `name:"max-id" placeholder:"N" help:"End of the ranges handed out so far. It can only be raised; ranges that nodes hold in memory are still used up."`
	Step        *int64  `placeholder:"N" help:"Length of a range, from the next load on. (1 to 1073741824)"`
	Description *string `placeholder:"TEXT" help:"Text for people, up to 256 characters."`
	MinStep     *int64  `placeholder:"N" help:"Lower bound of the dynamic step; 0 for the step."`
	MaxStep     *int64  `placeholder:"N" help:"Upper bound of the dynamic step; 0 for the limit of the node."`
	FixedStep   *bool   `negatable:"" help:"Every range has exactly the step's length."`
	Format      *string `placeholder:"TEMPLATE" help:"How people read the IDs, such as INV-{seq:08}; empty for none. A template that could repeat a text of the one before is refused."`
	Order       *string `placeholder:"ORDER" help:"plain or strict. Strict order holds from the moment when every node has read the change: segment.sync-interval later, if all of them reach the database and none is of a version without this option. Then restart programs with a cache of the Go client: what it fetched before, it hands out until its next fetch."`
	Period      *string `placeholder:"PERIOD" help:"day, month or year, for a tag without a period: its numbers begin at 1 again in each. A tag keeps its period."`
	PeriodZone  *string `placeholder:"ZONE" help:"Time zone of the period, such as Europe/Berlin. (default UTC)"`
}

// stepText is the row's step with its options: "1000", "1000 (100 to 5000)",
// "1000 (fixed)".
func stepText(t manage.Tag) string {
	step := strconv.FormatInt(t.Step, 10)
	switch {
	case t.FixedStep:
		return step + " (fixed)"
	case t.MinStep != 0 && t.MaxStep != 0:
		return fmt.Sprintf("%s (%d to %d)", step, t.MinStep, t.MaxStep)
	case t.MinStep != 0:
		return fmt.Sprintf("%s (from %d)", step, t.MinStep)
	case t.MaxStep != 0:
		return fmt.Sprintf("%s (to %d)", step, t.MaxStep)
	}
	return step
}
