package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// sequenceGroup are the commands about sequences.
type sequenceGroup struct {
	Create sequenceCreateCmd `cmd:"" help:"Create a sequence."`
	Delete sequenceDeleteCmd `cmd:"" help:"Delete a sequence."`
	Repair sequenceRepairCmd `cmd:"" help:"Release the rows of a sequence that are latched because their store went backwards."`
}

type sequenceCreateCmd struct {
	storeFlags
	jsonFlag
	Name        string `arg:"" help:"Name of the sequence: 1 to 119 characters."`
	Start       int64  `default:"1" placeholder:"N" help:"First number of each entity. (default 1)"`
	Step        int64  `default:"1000" placeholder:"N" help:"How many numbers one write to the database reserves, for the entity in front. Entities leave out about as many numbers when another node takes over. (default 1000; 100 to 1000000)"`
	Description string `placeholder:"TEXT" help:"Text for people, up to 256 characters."`
}

// Help implements kong.HelpProvider.
func (sequenceCreateCmd) Help() string {
	return `Each entity of a sequence, such as a user or a chat, has strictly increasing numbers of its own.

A sequence consists of 1,024 rows, which are tags in strict order: NAME/seq/0000 to NAME/seq/1023. An entity belongs to one of them by its name. If the command is interrupted, run it again: it makes the rows that are missing.`
}

// Run creates a sequence.
func (c *sequenceCreateCmd) Run(ctx context.Context, p Process) error {
	q := manage.CreateSequence{Name: c.Name, Start: c.Start, Step: c.Step, Description: c.Description}
	return ask(ctx, p, c, q, func(w io.Writer, s manage.Sequence) error {
		_, err := fmt.Fprintf(w, "created %d rows of sequence %s\n", s.Rows, printable(s.Name))
		return err
	})
}

type sequenceDeleteCmd struct {
	storeFlags
	jsonFlag
	Name string `arg:"" help:"Name of the sequence."`
	Yes  bool   `help:"Do it. Without this flag nothing is deleted."`
}

// Help implements kong.HelpProvider.
func (sequenceDeleteCmd) Help() string {
	return `All rows of the sequence are deleted, each as a tag is. If the command is interrupted, run it again. Use another name for a new sequence: one with this name would have to begin above all its numbers.`
}

// Run deletes a sequence.
func (c *sequenceDeleteCmd) Run(ctx context.Context, p Process) error {
	if !c.Yes {
		return fmt.Errorf("%w: sequence %q is not deleted: nodes then answer that it is unknown, and it can be created again only above its numbers; add --yes to do it", leaf.ErrBadRequest, c.Name)
	}
	return ask(ctx, p, c, manage.DeleteSequence{Name: c.Name}, func(w io.Writer, s manage.Sequence) error {
		_, err := fmt.Fprintf(w, "deleted %d rows of sequence %s\n", s.Rows, printable(s.Name))
		return err
	})
}
