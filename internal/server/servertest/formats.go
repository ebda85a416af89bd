package servertest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/opaque"
)

// newRing returns a ring of 63 bits with four versions, of which two have keys. issue encodes.
func newRing(issue int) *opaque.Ring {
	return &opaque.Ring{Bits: 63, VersionBits: 2, Issue: issue, Keys: map[int][]byte{
		0: bytes.Repeat([]byte("zero"), opaque.SecretSize/4), 1: bytes.Repeat([]byte("one."), opaque.SecretSize/4),
	}}
}

// templates are the formats of the tags that have one.
var templates = map[string]string{"a/b": "AB-{seq:013:36}", "other": "OT-{seq:013:36}", "narrow": "{seq:02}"}

// findTemplate is format.Formats.Templates of a node that knows all tags.
func findTemplate(tag string) (t *number.Template, known bool, err error) {
	if templates[tag] == "" {
		return nil, true, leaf.BadField("format", format.Text, "this tag has no template")
	}
	t, err = number.ParseTemplate(templates[tag])
	return t, true, err
}

// startFormats starts a server whose keys are those of ring; nil: it has none.
func (b *bench) startFormats(f *fake, ring *opaque.Ring) (Texts, *format.Formats) {
	b.Helper()
	k := &format.Formats{Templates: findTemplate}
	if err := k.Replace(ring, nil); err != nil {
		b.Fatalf("%v", err)
	}
	return b.opt.StartFormats(b, f.access(), k), k
}

// formats: texts of every format decode to exactly the IDs that were issued. The tag of an opaque
// ID is that of the request, and in snowflake mode always the same.
func formats(b *bench) {
	const many = 3000 // more than a server writes at once
	ring := newRing(0)
	issued := map[int][]leaf.Range{
		0:    {{Lo: ring.Largest(), Hi: ring.Largest() + 1}},
		1:    {{Lo: 7, Hi: 8}},
		5:    {{Lo: 0, Hi: 2}, {Lo: 5, Hi: 7}, {Lo: 1<<53 + 1, Hi: 1<<53 + 2}},
		many: {{Lo: 1 << 60, Hi: 1<<60 + many}},
	}
	for n, want := range issued {
		f := giving(want...)
		ask, _ := b.startFormats(f, ring)
		for _, name := range []string{format.Number, format.Text, format.Opaque, format.OpaqueBase62, format.OpaqueCrockford} {
			for _, mode := range []string{segment, snowflake} {
				if name == format.Text && mode == snowflake {
					continue // wrongFormat
				}
				if n == many && (name != format.Opaque || mode != segment) {
					continue // a text takes long with the race detector
				}
				texts, err := ask(b.call(b.patience), mode, "a/b", n, name)
				if calls, asked := f.asked(), (call{mode, "a/b", max(n, 1)}); !slices.Equal(calls, []call{asked}) {
					b.Errorf("the issuer was asked %v; want %v once", calls, asked)
				}
				got, fault := read(ring, mode, name, texts)
				if err != nil || fault != nil || !slices.Equal(got, want) {
					b.Errorf("%s, %d in %s: %v, %v, %v; want %v", mode, n, name, got, err, fault, want)
				}
			}
		}
	}
}

// read returns the IDs that texts stand for.
func read(ring *opaque.Ring, mode, name string, texts []string) (ranges []leaf.Range, err error) {
	tag := "a/b"
	if mode == snowflake {
		tag = format.SnowflakeTag
	}
	permutation := ring.Tag(tag)
	for _, text := range texts {
		var id int64
		switch name {
		case format.Number:
			id, err = strconv.ParseInt(text, 10, 64)
		case format.Text:
			id, err = readText(tag, text)
		default:
			id, err = textOf(name).Parse(text)
			if err == nil {
				id, err = permutation.Decode(id)
			}
		}
		if err != nil {
			return ranges, err
		}
		ranges = leaf.AppendRange(ranges, leaf.Range{Lo: id, Hi: id + 1})
	}
	return ranges, nil
}

// readText returns the ID that the template of a tag has written.
func readText(tag, text string) (int64, error) {
	t, _, err := findTemplate(tag)
	if err != nil {
		return 0, err
	}
	return t.Parse(text)
}

// textOf returns how a format writes an opaque ID.
func textOf(name string) opaque.Text {
	text, err := opaque.ParseText(strings.TrimPrefix(name, format.Opaque+"-"))
	if err != nil {
		return opaque.Decimal
	}
	return text
}

// wrongFormat: a word that is none, an opaque format without keys, and texts of what has no template.
func wrongFormat(b *bench) {
	for _, tt := range []struct {
		ring *opaque.Ring
		name string
		want string
	}{
		{newRing(0), "hex", "opaque-base62"},
		{newRing(0), "Opaque", "opaque-base62"},
		{newRing(0), "opaque ", "opaque-base62"},
		{nil, format.OpaqueBase62, format.KeysKey},
		{nil, "base62", "opaque-base62"},
		{nil, format.Text, ""},
		{nil, "Text", "opaque-base62"},
	} {
		f := counting()
		ask, _ := b.startFormats(f, tt.ring)
		for _, w := range ways {
			texts, err := ask(b.call(b.patience), w.mode, "order", w.n, tt.name)
			switch {
			case !errors.Is(err, leaf.ErrBadRequest) || len(texts) > 0:
				b.Errorf("%v in %q = %q, %v; want ErrBadRequest", w, tt.name, texts, err)
			case !strings.Contains(err.Error(), "format=") || !strings.Contains(err.Error(), tt.want):
				b.Errorf("%v in %q: %v; want the format and %s named", w, tt.name, err, tt.want)
			}
		}
		b.notAsked(f)
	}
}

// beyondFormat: one ID of a batch is too large. None arrives, and the next request works.
func beyondFormat(b *bench) {
	ring := newRing(0)
	for _, w := range ways {
		for _, tt := range []struct {
			tag, name string
			largest   int64
		}{{"order", format.OpaqueBase62, ring.Largest()}, {"narrow", format.Text, 99}} {
			if tt.name == format.Text && w.mode == snowflake {
				continue // wrongFormat
			}
			f := giving(leaf.Range{Lo: tt.largest - int64(max(w.n, 1)) + 2, Hi: tt.largest + 2})
			ask, _ := b.startFormats(f, ring)
			texts, err := ask(b.call(b.patience), w.mode, tt.tag, w.n, tt.name)
			if !errors.Is(err, leaf.ErrBadRequest) || len(texts) > 0 {
				b.Errorf("%v in %s = %q, %v; want ErrBadRequest", w, tt.name, texts, err)
			} else if !strings.Contains(err.Error(), "are lost") {
				b.Errorf("%v in %s: %v; want that the IDs are lost", w, tt.name, err)
			}
			if texts, err := ask(b.call(b.patience), w.mode, tt.tag, w.n, format.Number); err != nil || len(texts) != max(w.n, 1) {
				b.Errorf("%v in numbers after it: %q, %v", w, texts, err)
			}
		}
	}
}

// templatesOfTags: a text is by the template that its own tag has at that moment. A tag that the node does not know
// before it has issued an ID has its template, too, and a tag without one gets an error after that.
func templatesOfTags(b *bench) {
	var known atomic.Bool
	f := counting()
	inner := f.answer
	f.answer = func(ctx context.Context, c call) ([]leaf.Range, error) {
		defer known.Store(true)
		return inner(ctx, c)
	}
	k := &format.Formats{Templates: func(tag string) (t *number.Template, _ bool, err error) {
		if !known.Load() {
			return nil, false, nil
		}
		return findTemplate(tag)
	}}
	ask := b.opt.StartFormats(b, f.access(), k)
	last := int64(0)
	for _, tag := range []string{"a/b", "other", "order", "other", "a/b"} {
		for _, n := range []int{0, 3} {
			for _, unknown := range []bool{true, false} {
				known.Store(!unknown)
				texts, err := ask(b.call(b.patience), segment, tag, n, format.Text)
				if templates[tag] == "" {
					if !errors.Is(err, leaf.ErrBadRequest) || len(texts) > 0 || unknown && !strings.Contains(err.Error(), "are lost") {
						b.Errorf("%d of %s = %q, %v; want ErrBadRequest", n, tag, texts, err)
					}
					if unknown {
						last += int64(max(n, 1))
					}
					continue
				}
				if err != nil || len(texts) != max(n, 1) {
					b.Errorf("%d of %s = %q, %v", n, tag, texts, err)
				}
				for _, text := range texts {
					last++
					if id, err := readText(tag, text); err != nil || id != last {
						b.Errorf("%q of %s is %d, %v; want %d", text, tag, id, err, last)
					}
				}
			}
		}
	}
}

// otherKeys: keys that are exchanged count for the next request, also on a connection that is
// open. What the old key encoded still decodes.
func otherKeys(b *bench) {
	before, after := newRing(0), newRing(1)
	f := giving(leaf.Range{Lo: 41, Hi: 42})
	ask, k := b.startFormats(f, before)
	var seen []string
	for _, ring := range []*opaque.Ring{before, after} {
		if err := k.Replace(ring, nil); err != nil {
			b.Fatalf("%v", err)
		}
		texts, err := ask(b.call(b.patience), segment, "a/b", 0, format.OpaqueBase62)
		got, fault := read(before, segment, format.OpaqueBase62, texts)
		if err != nil || fault != nil || !slices.Equal(got, []leaf.Range{{Lo: 41, Hi: 42}}) {
			b.Errorf("key %d: %v, %v, %v", ring.Issue, got, err, fault)
		}
		seen = append(seen, texts...)
	}
	if len(seen) != 2 || seen[0] == seen[1] {
		b.Errorf("41 is %q with two keys", seen)
	}
}
