package segment_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// TestFormatAlarm: at 90 % of the width, also by a load between two syncs, until the tag has more digits; and for a format
// that cannot be used.
func TestFormatAlarm(t *testing.T) {
	format := func(f string) segment.Row {
		r := withOptions(10, segment.Options{FixedStep: true, Format: f})
		r.MaxID = 880
		return r
	}
	for _, c := range []struct {
		name   string
		before func(s *store) // the first sync
		change func(t *testing.T, s *store, a *segment.Allocator)
		says   string // the alarm, "" for none
	}{
		{"below", func(s *store) { s.Put(format("{seq:03}")) }, nil, ""},
		{"another width", func(s *store) { s.Put(format("{seq:04}")) }, func(t *testing.T, s *store, a *segment.Allocator) {
			next(t, a, "order")
		}, ""},
		{"by loads", func(s *store) { s.Put(format("{seq:03}")) }, func(t *testing.T, s *store, a *segment.Allocator) {
			for range 25 { // the third range ends at 910
				next(t, a, "order")
			}
		}, "soon do not fit its format: max_id is 9"},
		{"by a sync", func(s *store) { s.Put(format("{seq:03}")) }, func(t *testing.T, s *store, a *segment.Allocator) {
			if err := s.Update(t.Context(), "order", segment.Change{MaxID: new(int64(1001))}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
		}, "new IDs of tag \"order\" do not fit its format"},
		{"beyond, from the start", func(s *store) { s.Put(format("{seq:01:36}")) }, nil, "max_id is 880, and {seq:01:36} is for IDs up to 35"},
		{"cannot be used", func(s *store) { s.Put(format("{seq:3}")) }, nil, "the format of tag \"order\" cannot be used: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l := newStore(), newAlarms()
				c.before(s)
				a := node(t, s, nil, segment.Config{Alarms: l})
				if c.change != nil {
					c.change(t, s, a)
				}
				if c.says == "" {
					l.want(t)
					return
				}
				l.want(t, "format order")
				if text := l.text(leaf.AlarmFormat, "order"); !strings.Contains(text, c.says) {
					t.Errorf("text %q, want %q", text, c.says)
				}
				if err := s.Update(t.Context(), "order", segment.Change{Format: new("{seq:06}")}); err != nil {
					t.Fatal(err)
				}
				if err := a.Refresh(t.Context(), "order"); err != nil {
					t.Fatal(err)
				}
				l.want(t)
			})
		})
	}
}

// TestFormatAlarmEndsWithTheTag: the alarm of a tag whose row is gone ends.
func TestFormatAlarmEndsWithTheTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := newStore(row(10)), newAlarms()
		if err := s.Create(t.Context(), segment.NewRow{Tag: "narrow", Start: 99, Step: 1, Options: segment.Options{Format: "{seq:02}"}}); err != nil {
			t.Fatal(err)
		}
		a := node(t, s, nil, segment.Config{Alarms: l})
		l.want(t, "format narrow")
		if err := s.Delete(t.Context(), "narrow"); err != nil {
			t.Fatal(err)
		}
		if err := a.Refresh(t.Context(), "narrow"); err != nil {
			t.Fatal(err)
		}
		l.want(t)
	})
}

// TestOlderReadingOfMaxID: a list of tags that was read before a load does not end the alarm that the load began.
func TestOlderReadingOfMaxID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := withOptions(10, segment.Options{FixedStep: true, Format: "{seq:03}"})
		old.MaxID = 895
		s, l := newStore(old), newAlarms()
		a := node(t, s, nil, segment.Config{Alarms: l})
		for range 20 {
			next(t, a, "order")
		}
		synctest.Wait() // loads ahead of need have ended: none reads the older row
		l.want(t, "format order")
		s.Put(old)
		if err := a.Refresh(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		l.want(t, "format order")
	})
}
