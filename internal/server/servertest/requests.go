package servertest

import (
	"errors"
	"strings"

	"github.com/leaf-idgen/leaf"
)

// oddTags are valid, and each has been the fault of some server or client library.
var oddTags = []string{
	"order.pay-2_x~", " ", " a b ", "a+b", "%41", "50%", ".", "..", "../..", "a/b", "/", "//a//", "a?count=2", "a#b", "a&b=c;d",
	"a\tb", "a\nb", "a\r\nb", "\r\n", "$5", "*3", "-1", "0", "\"quoted\"", "'a'", `a\b`, `\u0000`, "{a}", "[a]", "<b>&amp;",
	"\x01\x1b\x7f", "订单", "é", "e\u0301", "ÉÈ", "\ufeffbom", "a\u2028b", "\ufffd", "🍃", "Order", "ORDER", "null", "true",
	strings.Repeat("x", leaf.MaxTagLen), strings.Repeat("🍃", leaf.MaxTagLen), strings.Repeat("/", leaf.MaxTagLen),
}

func exactTags(b *bench) {
	f := giving(leaf.Range{Lo: 7, Hi: 8})
	wire := b.start(b, f.access())
	for _, tag := range oddTags {
		for _, mode := range []string{segment, snowflake} {
			for _, n := range []int{0, 1} {
				b.want(f, wire, way{mode, n}, tag, leaf.Range{Lo: 7, Hi: 8})
			}
		}
	}
}

func wrongTag(b *bench) {
	b.refused("tag", way{segment, 0}, "", strings.Repeat("x", leaf.MaxTagLen+1), strings.Repeat("🍃", leaf.MaxTagLen+1), strings.Repeat("y", 1000), "\x00", "a\x00b")
}

func brokenTag(b *bench) { b.refused("tag", way{segment, 0}, "\xff", "a\xc3", "\xed\xa0\x80") }

func wrongCount(b *bench) {
	for _, n := range []int{-1, leaf.MaxBatch + 1, 1 << 30} {
		b.refused("count", way{segment, n}, "order")
		b.refused("count", way{snowflake, n}, "order")
	}
}

func zeroCount(b *bench) {
	f := counting()
	wire := b.start(b, f.access())
	for mode, issuer := range map[string]leaf.Issuer{segment: wire.Segment, snowflake: wire.Snowflake} {
		got, err := issuer.NextN(b.call(b.patience), "order", 0)
		if !errors.Is(err, leaf.ErrBadRequest) || len(got) > 0 {
			b.Errorf("%s.NextN of 0 = %v, %v; want ErrBadRequest", mode, got, err)
		}
	}
	b.notAsked(f)
}

// refused expects calls with tags to be bad requests, in single calls and in batches,
// that name the field.
func (b *bench) refused(field string, w way, tags ...string) {
	b.Helper()
	f := counting()
	wire := b.start(b, f.access())
	for _, tag := range tags {
		all := []way{w}
		if w.n == 0 {
			all = append(all, way{w.mode, 2})
		}
		for _, w := range all {
			got, err := w.ask(b.call(b.patience), wire, tag)
			if !errors.Is(err, leaf.ErrBadRequest) || len(got) > 0 {
				b.Errorf("%v(%.20q, %d) = %v, %v; want ErrBadRequest", w, tag, w.n, got, err)
			} else if !strings.Contains(err.Error(), field) {
				b.Errorf("%v(%.20q, %d): %v; want the field %q named", w, tag, w.n, err, field)
			}
		}
	}
	b.notAsked(f)
}

func (b *bench) notAsked(f *fake) {
	b.Helper()
	if calls := f.asked(); len(calls) > 0 {
		b.Errorf("the issuer was asked %v; want no call", calls)
	}
}
