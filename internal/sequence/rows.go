package sequence

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

var (
	_ Blocks = Rows{}
	_ Tags   = (*segment.Allocator)(nil)
)

// Tags is a segment.Allocator.
type Tags interface {
	leaf.Issuer

	// Drops counts how often the node has dropped what it held of a tag.
	Drops(tag string) *segment.Drops

	// Strict reports whether a tag of which it has issued IDs is in strict order.
	Strict(tag string) bool
}

// Rows takes the blocks of a tag's sections from segment mode: every section is a tag of its own, RowName. These tags
// must be in strict order (segment.OrderStrict), with a fixed step: a dynamic one grows to 1,000,000, and so would
// the jumps. The fences, the latch and the repair of segment mode hold for them as for all tags: when segment mode drops
// what it has of a tag, the blocks taken from there are dropped as well.
type Rows struct {
	Tag   string
	Tags  Tags
	Terms segment.Terms // as in the Config of the Allocator
}

// rowTerm ends with the owner's term, and when segment mode drops what it has of the tag.
type rowTerm struct {
	owner segment.Term
	drops *segment.Drops
	count int64
}

// Valid implements Term.
func (t rowTerm) Valid() bool { return t.drops.Count() == t.count && t.owner.Valid() }

// maxGaps is how often Reserve asks again because another node has numbers between two ranges.
const maxGaps = 4

// MinStep and MaxStep are the limits of the step of a row. A block takes Config.Step numbers at once from the ranges of the
// row, so a shorter step would cost several writes for a block; a longer one lets entities jump far.
const (
	MinStep = 100
	MaxStep = 1_000_000
)

// rowMark stands between tag and section in the name of a row.
const rowMark = "/seq/"

// RowName returns the name of the tag that holds the end of a section.
func RowName(tag string, section int) string { return fmt.Sprintf("%s%s%04d", tag, rowMark, section) }

// ParseRow is the opposite of RowName. It returns false for every other name.
func ParseRow(name string) (tag string, section int, ok bool) {
	at := strings.LastIndex(name, rowMark)
	if at < 1 {
		return "", 0, false
	}
	tag = name[:at]
	section, err := strconv.Atoi(name[at+len(rowMark):])
	if err != nil || section < 0 || section >= Sections || RowName(tag, section) != name {
		return "", 0, false
	}
	return tag, section, true
}

// OptionsAgain says how a row that lost its options, as with the table leaf_tag_option, is one of a sequence again.
func OptionsAgain(row string) string {
	tag, _, _ := ParseRow(row)
	return fmt.Sprintf("if it lost its options, restore its row of leaf_tag_option from a backup, or run, for each row from '%s' to '%s': leaf tag set '%s' --order strict --fixed-step", RowName(tag, 0), RowName(tag, Sections-1), row)
}

// Reserve implements Blocks. The term is asked before the ranges. If it is valid when a number was taken from the block,
// it was valid all the time between, and so all ranges of the block were reserved in it.
func (r Rows) Reserve(ctx context.Context, section int, n int64) (Block, error) {
	row := RowName(r.Tag, section)
	drops := r.Tags.Drops(row)
	count := drops.Count()
	owner, err := r.Terms.Term(row)
	if err != nil {
		return Block{}, err
	}
	var block leaf.Range
	for range maxGaps {
		ranges, err := r.Tags.NextN(ctx, row, int(n-block.Len()))
		if err != nil {
			return Block{}, err
		}
		if !r.Tags.Strict(row) {
			return Block{}, fmt.Errorf("%w: tag %q is a row of a sequence, and is not in strict order; %s", leaf.ErrInvalidRow, row, OptionsAgain(row))
		}
		for _, g := range ranges {
			if block.Hi != g.Lo {
				block.Lo = g.Lo // another node has the numbers between
			}
			block.Hi = g.Hi
		}
		if block.Len() == n {
			return Block{Range: block, Term: rowTerm{owner, drops, count}}, nil
		}
	}
	return Block{}, fmt.Errorf("%w: tag %q gives no %d numbers in a row", leaf.ErrNotReady, row, n)
}
