package segment_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// templateOf returns the template of a tag as the allocator knows it, "unknown" or "none".
func templateOf(t *testing.T, a *segment.Allocator, tag string) string {
	t.Helper()
	made, known, err := a.Template(tag)
	switch {
	case !known:
		return "unknown"
	case err != nil:
		wantErr(t, err, leaf.ErrBadRequest)
		if strings.Contains(err.Error(), "leaf tag set TAG --format TEMPLATE") {
			return "none"
		}
		return "unusable"
	}
	return made.String()
}

// TestTemplate: a tag's format is that of its row, from the first ID on and after each sync. A row with a format that this
// program cannot read still has its other options, and is told where the format is asked for.
func TestTemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(withOptions(10, segment.Options{Format: "INV-{seq:08}"}))
		a := node(t, s, nil, segment.Config{})
		if got := templateOf(t, a, "order"); got != "INV-{seq:08}" {
			t.Errorf("of the first sync: %s", got)
		}
		if err := s.Create(t.Context(), segment.NewRow{Tag: "late", Start: 1, Step: 10, Options: segment.Options{Format: "L{seq:03}"}}); err != nil {
			t.Fatal(err)
		}
		if got := templateOf(t, a, "late"); got != "unknown" {
			t.Errorf("before its first ID: %s", got)
		}
		next(t, a, "late")
		if got := templateOf(t, a, "late"); got != "L{seq:03}" {
			t.Errorf("after its first ID: %s", got)
		}
		for _, c := range []struct{ format, want string }{
			{"INV-{seq:09}", "INV-{seq:09}"},
			{"INV-{yyyy}-{seq:08}", "unusable"},
			{"", "none"},
			{"{seq:04}", "{seq:04}"},
		} {
			s.Put(withOptions(10, segment.Options{MinStep: 5, FixedStep: true, Format: c.format}))
			if err := a.Refresh(t.Context(), "order"); err != nil {
				t.Fatal(err)
			}
			if got := templateOf(t, a, "order"); got != c.want {
				t.Errorf("of %q: %s, want %s", c.format, got, c.want)
			}
		}
		if got := templateOf(t, a, "nobody's"); got != "unknown" {
			t.Errorf("of a tag without a row: %s", got)
		}
	})
}

// TestFormatThatCannotBeRead: the bounds of the step hold, whatever the format is, and the other way round.
func TestFormatThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		name    string
		options segment.Options
		length  int64
		want    string
	}{
		{"a format that cannot be read", segment.Options{MinStep: 50, Format: "INV"}, 50, "unusable"},
		{"bounds that cross", segment.Options{MinStep: 50, MaxStep: 20, Format: "{seq:08}"}, 10, "{seq:08}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(withOptions(10, c.options))
				a := node(t, s, nil, segment.Config{})
				next(t, a, "order")
				if st := a.Snapshot(); len(st) != 1 || st[0].Length != c.length {
					t.Errorf("%+v, want a range of %d", st, c.length)
				}
				if got := templateOf(t, a, "order"); got != c.want {
					t.Errorf("template %s, want %s", got, c.want)
				}
			})
		})
	}
}

// TestFormatThatRepeatsATextIsRefused: which format may follow another one.
func TestFormatThatRepeatsATextIsRefused(t *testing.T) {
	for _, c := range []struct {
		was, format string
		refused     bool
	}{
		{"", "INV-{seq:08}", false},
		{"INV-{seq:08}", "INV-{seq:08}", false},
		{"INV-{seq:08}", "INV-{seq:09}", false},
		{"INV-{seq:08}", "INV-{seq:08:36}", true},
		{"INV-{seq:08}", "", false},
		{"what no program wrote", "INV-{seq:08:36}", false},
	} {
		err := segment.Change{Format: &c.format}.CheckFormat(segment.Options{Format: c.was})
		if !c.refused && err != nil {
			t.Errorf("%q after %q: %v", c.format, c.was, err)
		}
		if c.refused {
			wantErr(t, err, leaf.ErrConflict)
			if !strings.Contains(err.Error(), "leaf tag set TAG --format=") {
				t.Errorf("%q after %q: %v", c.format, c.was, err)
			}
		}
		if err := (segment.Change{MinStep: new(int64(1))}).CheckFormat(segment.Options{Format: c.was}); err != nil {
			t.Errorf("another option beside %q: %v", c.was, err)
		}
	}
}
