package format_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/opaque"
)

// ring returns a ring whose keys are the versions given, each filled with its version plus salt.
func ring(bits, versionBits, issue int, salt byte, versions ...int) *opaque.Ring {
	r := &opaque.Ring{Bits: bits, VersionBits: versionBits, Issue: issue, Keys: map[int][]byte{}}
	for _, version := range versions {
		r.Keys[version] = bytes.Repeat([]byte{byte(version) + salt}, opaque.SecretSize)
	}
	return r
}

func keys(t *testing.T, r *opaque.Ring) *format.Formats {
	t.Helper()
	k := &format.Formats{}
	if err := k.Replace(r, nil); err != nil {
		t.Fatal(err)
	}
	return k
}

// TestFormats: what each format writes is what package opaque encodes, for the tag and with the
// key that the ring issues with.
func TestFormats(t *testing.T) {
	t.Parallel()
	r := ring(63, 2, 1, 0, 0, 1)
	k := keys(t, r)
	for _, tt := range []struct {
		name string
		text opaque.Text
	}{{format.Opaque, opaque.Decimal}, {format.OpaqueBase62, opaque.Base62}, {format.OpaqueCrockford, opaque.Crockford}} {
		for _, mode := range []struct {
			tag  string
			open func() (*format.Format, error)
		}{
			{"order", func() (*format.Format, error) { return k.Segment("order", tt.name) }},
			{"snowflake", func() (*format.Format, error) { return k.Snowflake(tt.name) }},
		} {
			f, err := mode.open()
			if err != nil {
				t.Fatal(err)
			}
			ranges := []leaf.Range{{Lo: 0, Hi: 3}, {Lo: r.Largest(), Hi: r.Largest() + 1}}
			if err := f.Check(ranges...); err != nil {
				t.Fatal(err)
			}
			var want []string
			for id := range leaf.IDs(ranges) {
				encoded, err := r.Tag(mode.tag).Encode(id)
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, tt.text.Format(encoded))
			}
			if got := f.Texts(ranges); !slices.Equal(got, want) {
				t.Errorf("%s of %s: %q, want %q", tt.name, mode.tag, got, want)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, k := range []*format.Formats{nil, {}, keys(t, ring(63, 2, 0, 0, 0))} {
		for _, name := range []string{"", format.Number} {
			f, err := k.Segment("order", name)
			if err != nil || f != nil {
				t.Errorf("%q: %v, %v; want numbers", name, f, err)
			}
			all := leaf.Range{Lo: 7, Hi: math.MaxInt64}
			if err := f.Check(all); err != nil {
				t.Errorf("%v: %v", all, err)
			}
			if got := string(f.Append([]byte("a"), 7)); got != "a7" {
				t.Errorf("got %q", got)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	with := keys(t, ring(63, 2, 0, 0, 0))
	without := keys(t, ring(63, 2, 0, 0, 0))
	if err := without.Replace(nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		keys *format.Formats
		name string
		want string
	}{
		{with, "base62", `format="base62": must be number, text, opaque, opaque-base62 or opaque-crockford`},
		{with, "Opaque", `format="Opaque": must be`},
		{nil, "opaque", `format="opaque": needs keys, and this node has none: its configuration does not set opaque.keys`},
		{&format.Formats{}, "opaque-base62", "opaque.keys"},
		{without, "opaque-base62", "opaque.keys"},
		{nil, "hex", `format="hex": must be`},
	} {
		for _, open := range []func() (*format.Format, error){
			func() (*format.Format, error) { return tt.keys.Segment("order", tt.name) },
			func() (*format.Format, error) { return tt.keys.Snowflake(tt.name) },
		} {
			if f, err := open(); f != nil || !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q: %v, %v; want %s", tt.name, f, err, tt.want)
			}
		}
	}
}

// TestBeyond: an ID that the keys cannot encode is found in any of the ranges.
func TestBeyond(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ bits, versionBits int }{{63, 2}, {53, 0}, {53, 8}} {
		r := ring(tt.bits, tt.versionBits, 0, 0, 0)
		f, err := keys(t, r).Segment("order", format.Opaque)
		if err != nil {
			t.Fatal(err)
		}
		inside := leaf.Range{Lo: 0, Hi: r.Largest() + 1}
		if err := f.Check(inside, leaf.Range{}); err != nil {
			t.Errorf("%v: %v", inside, err)
		}
		for _, ranges := range [][]leaf.Range{
			{{Lo: 0, Hi: r.Largest() + 2}},
			{{Lo: 1, Hi: 2}, {Lo: r.Largest(), Hi: r.Largest() + 2}},
			{{Lo: -1, Hi: 1}},
			{{Lo: math.MaxInt64 - 1, Hi: math.MaxInt64}},
		} {
			if err := f.Check(ranges...); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "are lost") {
				t.Errorf("%v: %v", ranges, err)
			}
		}
	}
}

// TestReplace: another key may issue from now on. A ring that could make an opaque ID a second
// time is refused, also when the version was left out for a while.
func TestReplace(t *testing.T) {
	t.Parallel()
	first := ring(63, 2, 0, 0, 0)
	k := keys(t, first)
	write := func() string {
		f, err := k.Segment("order", format.Opaque)
		if err != nil {
			t.Fatal(err)
		}
		return string(f.Append(nil, 1))
	}
	before := write()
	for _, tt := range []struct {
		name string
		ring *opaque.Ring
		want string
	}{
		{"another secret", ring(63, 2, 0, 9, 0), "key 0 must stay the same"},
		{"another secret beside a new key", &opaque.Ring{Bits: 63, VersionBits: 2, Issue: 1, Keys: ring(63, 2, 0, 9, 0, 1).Keys}, "key 0 must stay the same"},
		{"other bits", ring(53, 2, 0, 0, 0), "bits must stay 63 and is 53"},
		{"other version bits", ring(63, 3, 0, 0, 0), "version-bits must stay 2 and is 3"},
	} {
		if _, err := k.After(tt.ring); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
		if err := k.Replace(tt.ring, nil); err == nil || write() != before {
			t.Errorf("%s: %v, and 1 is %s, before %s", tt.name, err, write(), before)
		}
	}
	if err := k.Replace(ring(63, 2, 1, 0, 1), nil); err != nil || write() == before { // without key 0
		t.Errorf("another key: %v, and 1 is %s, before %s", err, write(), before)
	}
	if err := k.Replace(nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := k.Replace(ring(63, 2, 0, 9, 0), nil); err == nil {
		t.Error("another key 0, after a ring without one")
	}
	if err := k.Replace(first, nil); err != nil || write() != before {
		t.Errorf("the first ring again: %v, and 1 is %s, before %s", err, write(), before)
	}
}

// TestTemplates: the format text is the template of the tag, found before the IDs are taken, or right after.
func TestTemplates(t *testing.T) {
	t.Parallel()
	made, err := number.ParseTemplate("N{seq:02}")
	if err != nil {
		t.Fatal(err)
	}
	none := leaf.BadField("format", format.Text, "this tag has none")
	type found struct {
		t     *number.Template
		known bool
		err   error
	}
	for _, tt := range []struct {
		name          string
		before, after found
		want          error
		taken         bool // IDs, before the error
	}{
		{"known", found{made, true, nil}, found{nil, true, none}, nil, true},
		{"known after the first ID", found{}, found{made, true, nil}, nil, true},
		{"no template", found{nil, true, none}, found{}, leaf.ErrBadRequest, false},
		{"no template, after the first ID", found{}, found{nil, true, none}, leaf.ErrBadRequest, true},
		{"deleted meanwhile", found{}, found{}, leaf.ErrUnknownTag, true},
	} {
		now := tt.before
		k := &format.Formats{Templates: func(tag string) (*number.Template, bool, error) {
			if tag != "order" {
				t.Errorf("%s: asked for %q", tt.name, tag)
			}
			return now.t, now.known, now.err
		}}
		f, err := k.Segment("order", format.Text)
		if (f != nil) != tt.taken {
			t.Errorf("%s: %v, %v before IDs are taken", tt.name, f, err)
			continue
		}
		if tt.taken {
			now = tt.after
			err = f.Check(leaf.Range{Lo: 7, Hi: 9}, leaf.Range{Lo: 99, Hi: 100})
			if tt.want != nil && !strings.Contains(fmt.Sprint(err), "are lost") {
				t.Errorf("%s: %v, want that the IDs are lost", tt.name, err)
			}
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if tt.want != nil {
			continue
		}
		if got := f.Texts([]leaf.Range{{Lo: 7, Hi: 9}, {Lo: 99, Hi: 100}}); !slices.Equal(got, []string{"N07", "N08", "N99"}) {
			t.Errorf("%s: %q", tt.name, got)
		}
		if err := f.Check(leaf.Range{Lo: 1, Hi: 2}, leaf.Range{Lo: 99, Hi: 101}); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "N{seq:02}, is for IDs from 0 to 99") {
			t.Errorf("%s: beyond the width: %v", tt.name, err)
		}
	}
	for _, k := range []*format.Formats{nil, {}} {
		f, err := k.Segment("order", format.Text)
		if err != nil || !errors.Is(f.Check(leaf.Range{Lo: 1, Hi: 2}), leaf.ErrUnknownTag) {
			t.Errorf("without templates: %v, %v", f, err)
		}
		if f, err := k.Snowflake(format.Text); f != nil || !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "segment mode") {
			t.Errorf("snowflake: %v, %v", f, err)
		}
	}
}

// TestLength: what Length says is what Append writes, also where numbers get a digit more.
func TestLength(t *testing.T) {
	t.Parallel()
	k := keys(t, ring(63, 2, 1, 0, 0, 1))
	opaque, err := k.Segment("order", format.OpaqueBase62)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*format.Format{"number": nil, "opaque": opaque} {
		for _, r := range []leaf.Range{
			{Lo: -101, Hi: 12},
			{Lo: 0, Hi: 1},
			{Lo: 1, Hi: 1},
			{Lo: 0, Hi: 1205},
			{Lo: 9, Hi: 10},
			{Lo: 9, Hi: 11},
			{Lo: 10, Hi: 100},
			{Lo: 99_990, Hi: 100_020},
			{Lo: 999_999_999_999_999_990, Hi: 1_000_000_000_000_000_010},
			{Lo: 4_611_686_018_427_387_000, Hi: 4_611_686_018_427_387_904},
		} {
			if err := f.Check(r); err != nil {
				continue // it has fewer bits
			}
			want := 0
			for id := r.Lo; id < r.Hi; id++ {
				want += len(f.Append(nil, id))
			}
			if got := f.Length(r); got != want {
				t.Errorf("%s: length of %v is %d, want %d", name, r, got, want)
			}
		}
	}
	if r := (leaf.Range{Lo: math.MaxInt64 - 100, Hi: math.MaxInt64}); (*format.Format)(nil).Length(r) != 1900 {
		t.Errorf("length of %v is %d", r, (*format.Format)(nil).Length(r))
	}
}
