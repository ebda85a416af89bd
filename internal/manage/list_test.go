package manage_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// TestListOfSequence: a sequence is one entry of a list, and on one page. Its row that needs an administrator is shown, and
// so is a tag between its rows.
func TestListOfSequence(t *testing.T) {
	t.Parallel()
	store := memory.New()
	names := []string{"a", "b", "chat", "chat/seq/0500x", "z", "zz"}
	for section := range sequence.Sections {
		names = append(names, sequence.RowName("chat", section))
	}
	for i, name := range names {
		if err := store.Create(t.Context(), segment.NewRow{Tag: name, Start: int64(1 + i), Step: 500}); err != nil {
			t.Fatal(err)
		}
	}
	latched := sequence.RowName("chat", 3)
	c := catalogOf(t, store)
	c.Mark = func(tag string) fence.Mark { return fence.Mark{Latched: tag == latched} }
	want := []string{"a 0", "b 0", "chat 0", "chat 1023", latched + " 0", "chat/seq/0500x 0", "z 0", "zz 0"}
	show := func(tags []manage.Tag) (shown []string) {
		for _, tag := range tags {
			shown = append(shown, fmt.Sprint(tag.Name, " ", tag.Rows))
			if tag.Rows > 0 && tag.MaxID != int64(len(names)) {
				t.Errorf("the sequence ends at %d, want %d", tag.MaxID, len(names))
			}
		}
		return shown
	}
	all, err := manage.Ask(t.Context(), manage.On(site{catalog: c}), manage.ListTags{})
	if err != nil || !slices.Equal(show(all), want) {
		t.Errorf("%q, %v, want %q", show(all), err, want)
	}
	for _, limit := range []int{1, 4, 507, 2000} { // 507: the tag between the rows is the last one of the page
		var got []string
		for after := ""; ; {
			page, next, err := c.List(t.Context(), after, limit)
			if err != nil || len(page) == 0 {
				t.Fatalf("limit %d, after %q: %d tags, %v", limit, after, len(page), err)
			}
			got = append(got, show(page)...)
			if after = next; after == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
}
