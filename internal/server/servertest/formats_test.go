package servertest_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// formatting is direct for texts. A test breaks it in one place by setting a hook.
type formatting struct {
	direct

	name func(name string) string                                                // as it arrives
	open func(k *format.Formats, mode, tag, name string) (*format.Format, error) // instead of the mode's format
	fits func(f *format.Format, ranges []leaf.Range) error                       // instead of Check
	late bool                                                                    // looks at the format when the IDs are there
}

func openFormat(k *format.Formats, mode, tag, name string) (*format.Format, error) {
	if mode == leaf.SnowflakeMode {
		return k.Snowflake(name)
	}
	return k.Segment(tag, name)
}

func (d formatting) start(t testing.TB, a leaf.Access, k *format.Formats) servertest.Texts {
	wire := d.direct.start(t, a)
	if d.open == nil {
		d.open = openFormat
	}
	if d.fits == nil {
		d.fits = func(f *format.Format, ranges []leaf.Range) error { return f.Check(ranges...) }
	}
	return func(ctx context.Context, mode, tag string, n int, name string) ([]string, error) {
		issuer := wire.Segment
		if mode == leaf.SnowflakeMode {
			issuer = wire.Snowflake
		}
		f, refused := d.open(k, mode, tag, hook(d.name, name))
		if refused != nil && !d.late {
			return nil, refused
		}
		ranges, err := issuer.NextN(ctx, tag, max(n, 1))
		if err != nil {
			return nil, err
		}
		if refused != nil {
			return nil, refused
		}
		if err := d.fits(f, ranges); err != nil {
			return nil, err
		}
		return texts(f, ranges)
	}
}

// texts ends where f cannot write an ID, as a server would that has begun its reply.
func texts(f *format.Format, ranges []leaf.Range) (all []string, err error) {
	err = guard(func() error {
		for id := range leaf.IDs(ranges) {
			all = append(all, string(f.Append(nil, id)))
		}
		return nil
	})
	return all, err
}

// formatCases are the cases about formats.
var formatCases = []string{"a wrong format", "an ID beyond a format", "formats", "keys that are exchanged", "templates of tags"}

// TestBrokenFormats: each fault about formats is seen, and by the cases that are about it.
func TestBrokenFormats(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault string
		make  func() formatting
		seen  []string
	}{
		{"none", func() formatting { return formatting{} }, nil},
		{"formats are ignored", func() formatting {
			return formatting{name: func(string) string { return "" }}
		}, formatCases},
		{"words in any case", func() formatting { return formatting{name: strings.ToLower} }, []string{"a wrong format"}},
		{"spaces are trimmed", func() formatting { return formatting{name: strings.TrimSpace} }, []string{"a wrong format"}},
		{"one tag for all", func() formatting {
			return formatting{open: func(k *format.Formats, _, _, name string) (*format.Format, error) { return k.Snowflake(name) }}
		}, []string{"an ID beyond a format", "formats", "keys that are exchanged", "templates of tags"}},
		{"the key of a snowflake request", func() formatting {
			return formatting{open: func(k *format.Formats, _, tag, name string) (*format.Format, error) { return k.Segment(tag, name) }}
		}, []string{"formats"}},
		{"the template of another tag", func() formatting {
			return formatting{open: func(k *format.Formats, mode, tag, name string) (*format.Format, error) {
				if name == format.Text && tag == "other" {
					tag = "a/b"
				}
				return openFormat(k, mode, tag, name)
			}}
		}, []string{"templates of tags"}},
		{"a wrong format takes IDs", func() formatting { return formatting{late: true} }, []string{"a wrong format", "templates of tags"}},
		{"IDs are written before all are checked", func() formatting {
			return formatting{fits: func(*format.Format, []leaf.Range) error { return nil }}
		}, []string{"an ID beyond a format", "templates of tags"}},
		{"only the first range is checked", func() formatting {
			return formatting{fits: func(f *format.Format, ranges []leaf.Range) error {
				return f.Check(leaf.Range{Lo: ranges[0].Lo, Hi: ranges[0].Lo + 1})
			}}
		}, []string{"an ID beyond a format"}},
		{"the first key for ever", func() formatting {
			var first *format.Format
			return formatting{open: func(k *format.Formats, mode, tag, name string) (_ *format.Format, err error) {
				if mode != leaf.SegmentMode || name != format.OpaqueBase62 || tag != "a/b" {
					return openFormat(k, mode, tag, name)
				}
				if first == nil {
					first, err = k.Segment(tag, name)
				}
				return first, err
			}}
		}, []string{"keys that are exchanged"}},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			var seen []string
			for _, name := range formatCases {
				d := tt.make()
				if failures := record(t, func(tb testing.TB) {
					servertest.RunCase(tb, name, servertest.Options{StartFormats: d.start}, d.direct.start)
				}); len(failures) > 0 {
					t.Logf("%s: %s", name, failures[0])
					seen = append(seen, name)
				}
			}
			slices.Sort(seen)
			if diff := cmp.Diff(tt.seen, seen); diff != "" {
				t.Errorf("cases that see it (-want +got):\n%s", diff)
			}
		})
	}
}
