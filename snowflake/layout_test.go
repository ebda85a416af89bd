package snowflake_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leaf-idgen/leaf/snowflake"
)

// layouts draws every kind of valid layout, most often with all 63 bits in use.
func layouts() *rapid.Generator[snowflake.Layout] {
	return rapid.Custom(func(t *rapid.T) snowflake.Layout {
		l := snowflake.Layout{
			Epoch: rapid.Int64Range(0, 1<<43).Draw(t, "epoch"),
			Unit:  rapid.SampledFrom([]time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second}).Draw(t, "unit"),
		}
		l.TimeBits = rapid.IntRange(1, 43).Draw(t, "time")
		l.SequenceBits = rapid.IntRange(0, 62-l.TimeBits).Draw(t, "sequence")
		rest := 63 - l.TimeBits - l.SequenceBits
		l.WorkerBits = rapid.IntRange(0, rest).Draw(t, "worker")
		l.DatacenterBits = rapid.SampledFrom([]int{0, rest - l.WorkerBits}).Draw(t, "datacenter")
		return l
	})
}

// extreme draws a value of so many bits, most often the first or the last ones.
func extreme(t *rapid.T, name string, bits int) int64 {
	top := int64(1)<<bits - 1
	return rapid.OneOf(
		rapid.SampledFrom([]int64{0, top, top / 2, min(1, top), max(0, top-1)}),
		rapid.Int64Range(0, top),
	).Draw(t, name)
}

// TestDecodeEncode: decode(encode(x)) == x for all layouts at their extremes, and
// encode(decode(id)) == id; no ID is negative or wider than its layout.
func TestDecodeEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		p := snowflake.Parts{
			Unit:       extreme(t, "unit", l.TimeBits),
			Datacenter: extreme(t, "datacenter", l.DatacenterBits),
			Worker:     extreme(t, "worker", l.WorkerBits),
			Sequence:   extreme(t, "sequence", l.SequenceBits),
		}
		id, err := l.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		if id < 0 || l.Bits() < 63 && id >= 1<<l.Bits() {
			t.Fatalf("ID %d does not fit %v", id, l)
		}
		if got, err := l.Decode(id); err != nil || got != p {
			t.Fatalf("decode(encode(%+v)) = %+v, %v", p, got, err)
		}
		any := extreme(t, "id", l.Bits())
		q, err := l.Decode(any)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := l.Encode(q); err != nil || back != any {
			t.Fatalf("encode(decode(%d)) = %d, %v", any, back, err)
		}
	})
}

// TestOrder: an ID of a later unit is larger, whatever the other fields are.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		u := rapid.Int64Range(0, int64(1)<<l.TimeBits-2).Draw(t, "unit")
		last := snowflake.Parts{
			Unit: u, Datacenter: 1<<l.DatacenterBits - 1, Worker: 1<<l.WorkerBits - 1, Sequence: 1<<l.SequenceBits - 1,
		}
		a, err := l.Encode(last)
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Encode(snowflake.Parts{Unit: u + 1})
		if err != nil || b != a+1 {
			t.Fatalf("first ID of unit %d is %d (%v), last of the one before %d", u+1, b, err, a)
		}
	})
}

// TestGolden pins the bits of the original. The first ID is public: a post of
// 2022-06-28 16:07:40.105 UTC by machine 378, in the layout that Leaf took over.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout snowflake.Layout
		id     int64
		parts  snowflake.Parts
		millis int64
	}{
		{"a public ID", snowflake.Leaf(), 1541815603606036480, snowflake.Parts{Unit: 367597485448, Worker: 378}, 1656432460105},
		{"first", snowflake.Leaf(), 0, snowflake.Parts{}, 1288834974657},
		{"one unit", snowflake.Leaf(), 4194304, snowflake.Parts{Unit: 1}, 1288834974658},
		{"one worker", snowflake.Leaf(), 4096, snowflake.Parts{Worker: 1}, 1288834974657},
		{"last", snowflake.Leaf(), math.MaxInt64, snowflake.Parts{Unit: 1<<41 - 1, Worker: 1023, Sequence: 4095}, 3487858230208},
		{"datacentre", snowflake.DC(), 1541815603606036480, snowflake.Parts{Unit: 367597485448, Datacenter: 11, Worker: 26}, 1656432460105},
		{"seconds", snowflake.Seconds(), 1<<31 | 1<<21 | 1, snowflake.Parts{Unit: 1, Worker: 1, Sequence: 1}, 1288834975657},
		{"js53", snowflake.JS53(), 1<<15 | 1<<9 | 1, snowflake.Parts{Unit: 1, Worker: 1, Sequence: 1}, 1288834974667},
		{"js53 last", snowflake.JS53(), 1<<53 - 1, snowflake.Parts{Unit: 1<<38 - 1, Worker: 63, Sequence: 511}, 4037614044087},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.layout.Decode(c.id)
			if err != nil || got != c.parts {
				t.Errorf("Decode(%d) = %+v, %v; want %+v", c.id, got, err, c.parts)
			}
			if id, err := c.layout.Encode(c.parts); err != nil || id != c.id {
				t.Errorf("Encode(%+v) = %d, %v; want %d", c.parts, id, err, c.id)
			}
			if ms := c.layout.Millis(got.Unit); ms != c.millis {
				t.Errorf("time %d, want %d", ms, c.millis)
			}
		})
	}
}

// TestRefused: a value outside its limits is an error that names it and the limit.
func TestRefused(t *testing.T) {
	leaf := snowflake.Leaf()
	with := func(change func(*snowflake.Layout)) snowflake.Layout {
		l := leaf
		change(&l)
		return l
	}
	encode := func(p snowflake.Parts) error { _, err := leaf.Encode(p); return err }
	decode := func(l snowflake.Layout, id int64) error { _, err := l.Decode(id); return err }
	for _, c := range []struct {
		name string
		err  error
		want []string
	}{
		{"negative epoch", with(func(l *snowflake.Layout) { l.Epoch = -1 }).Validate(), []string{"epoch=-1"}},
		{"far epoch", with(func(l *snowflake.Layout) { l.Epoch = 1<<43 + 1 }).Validate(), []string{"epoch=8796093022209", "8796093022208"}},
		{"no unit", with(func(l *snowflake.Layout) { l.Unit = 0 }).Validate(), []string{"unit=0s"}},
		{"odd unit", with(func(l *snowflake.Layout) { l.Unit = 2 * time.Millisecond }).Validate(), []string{"unit=2ms", "10ms"}},
		{"no time", with(func(l *snowflake.Layout) { l.TimeBits = 0 }).Validate(), []string{"time=0", "1 to 43"}},
		{"too much time", with(func(l *snowflake.Layout) { l.TimeBits, l.WorkerBits = 44, 7 }).Validate(), []string{"time=44", "1 to 43"}},
		{"negative datacenter", with(func(l *snowflake.Layout) { l.DatacenterBits = -1 }).Validate(), []string{"datacenter=-1"}},
		{"negative worker", with(func(l *snowflake.Layout) { l.WorkerBits = -1 }).Validate(), []string{"worker=-1"}},
		{"negative sequence", with(func(l *snowflake.Layout) { l.SequenceBits = -1 }).Validate(), []string{"sequence=-1"}},
		{"huge worker", with(func(l *snowflake.Layout) { l.WorkerBits = math.MaxInt }).Validate(), []string{"worker="}},
		{"64 bits", with(func(l *snowflake.Layout) { l.WorkerBits = 11 }).Validate(), []string{"=64", "63"}},
		{"no bit to spare", with(func(l *snowflake.Layout) { l.WorkerBits, l.SequenceBits = 0, 22 }).Validate(), []string{"time+sequence=63", "62"}},
		{"zero layout", snowflake.Layout{}.Validate(), []string{"unit"}},
		{"unit too large", encode(snowflake.Parts{Unit: 1 << 41}), []string{"unit=2199023255552", "2199023255551"}},
		{"negative unit", encode(snowflake.Parts{Unit: -1}), []string{"unit=-1"}},
		{"no datacenter here", encode(snowflake.Parts{Datacenter: 1}), []string{"datacenter=1", "0 to 0"}},
		{"worker too large", encode(snowflake.Parts{Worker: 1024}), []string{"worker=1024", "0 to 1023"}},
		{"negative worker part", encode(snowflake.Parts{Worker: -1}), []string{"worker=-1"}},
		{"sequence too large", encode(snowflake.Parts{Sequence: 4096}), []string{"sequence=4096", "4095"}},
		{"negative ID", decode(leaf, -1), []string{"id=-1"}},
		{"wide ID", decode(snowflake.JS53(), 1<<53), []string{"id=9007199254740992", "9007199254740991"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !errors.Is(c.err, snowflake.ErrInvalid) {
				t.Fatalf("error %v, want ErrInvalid", c.err)
			}
			for _, w := range c.want {
				if !strings.Contains(c.err.Error(), w) {
					t.Errorf("error %q does not say %q", c.err, w)
				}
			}
		})
	}
}

// TestPresets: each preset is valid and lasts; its text and fingerprint are pinned,
// since registries and files remember them.
func TestPresets(t *testing.T) {
	for _, c := range []struct {
		layout      snowflake.Layout
		name        string
		fingerprint string
		end         string
	}{
		{snowflake.Leaf(), "leaf", "e1288834974657 u1ms t41 d0 w10 s12", "2080-07-10T17:30:30.208Z"},
		{snowflake.DC(), "dc", "e1288834974657 u1ms t41 d5 w5 s12", "2080-07-10T17:30:30.208Z"},
		{snowflake.Seconds(), "seconds", "e1288834974657 u1s t32 d0 w10 s21", "2146-12-11T08:11:09.657Z"},
		{snowflake.JS53(), "js53", "e1288834974657 u10ms t38 d0 w6 s9", "2097-12-11T15:27:24.087Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.layout.Validate(); err != nil {
				t.Error(err)
			}
			if got := c.layout.Fingerprint(); got != c.fingerprint {
				t.Errorf("fingerprint %q, want %q", got, c.fingerprint)
			}
			if got := c.layout.End().Format("2006-01-02T15:04:05.999Z"); got != c.end {
				t.Errorf("ends %s, want %s", got, c.end)
			}
			if got, ok := snowflake.Preset(c.name); !ok || got != c.layout {
				t.Errorf("Preset(%q) = %v, %v", c.name, got, ok)
			}
		})
	}
	if got := fmt.Sprint(snowflake.Presets()); got != "[leaf dc seconds js53]" {
		t.Errorf("presets %s", got)
	}
}

// TestFingerprintTellsApart: two layouts share a fingerprint only if they are equal.
func TestFingerprintTellsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := layouts().Draw(t, "a")
		b := rapid.OneOf(layouts(), rapid.Just(a)).Draw(t, "b")
		if (a == b) != (a.Fingerprint() == b.Fingerprint()) {
			t.Fatalf("%v and %v", a, b)
		}
	})
}
