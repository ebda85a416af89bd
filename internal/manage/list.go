package manage

import (
	"context"
	"slices"

	"github.com/leaf-idgen/leaf/internal/sequence"
)

// ListTags returns all tags, sorted by name. A sequence is one entry with Rows, where its first row would be.
type ListTags struct{}

func (ListTags) run(ctx context.Context, c *Catalog) ([]Tag, error) {
	tags, err := c.Tags(ctx)
	return foldSequences(tags), err
}

// List is TagsAfter with each sequence as one entry. A page ends between two sequences, never within one, so that no
// sequence is on two pages.
func (c *Catalog) List(ctx context.Context, after string, limit int) (page []Tag, next string, err error) {
	page, next, err = c.TagsAfter(ctx, after, limit)
	for name, ok := openSequence(page, next); ok && err == nil; name, ok = openSequence(page, next) {
		last := sequence.RowName(name, sequence.Sections-1)
		var more []Tag
		more, next, err = c.TagsAfter(ctx, next, sequence.Sections)
		for k, t := range more {
			if t.Name > last {
				more, next = more[:k], last
				break
			}
		}
		page = append(page, more...)
	}
	return foldSequences(page), next, err
}

// openSequence returns the last sequence of a page, if the next page may have rows of it.
func openSequence(page []Tag, next string) (name string, ok bool) {
	if next == "" {
		return "", false
	}
	for _, t := range slices.Backward(page) {
		if name, _, ok := sequence.ParseRow(t.Name); ok {
			return name, next < sequence.RowName(name, sequence.Sections-1)
		}
	}
	return "", false
}

// foldSequences makes one entry of the rows of a sequence. Rows that need an administrator stay by themselves.
func foldSequences(tags []Tag) []Tag {
	out := make([]Tag, 0, len(tags))
	at := map[string]int{} // by sequence, where its entry is
	for _, t := range tags {
		name, _, ok := sequence.ParseRow(t.Name)
		if !ok || t.State != TagOK {
			out = append(out, t)
			continue
		}
		i, begun := at[name]
		if !begun {
			i, at[name] = len(out), len(out)
			t.Name = name
			out = append(out, t)
		}
		out[i].Rows++
		out[i].MaxID, out[i].Fence = max(out[i].MaxID, t.MaxID), max(out[i].Fence, t.Fence)
	}
	return out
}
