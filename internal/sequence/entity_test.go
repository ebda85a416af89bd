package sequence_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/internal/spread"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name string
		want sequence.Entity // the zero Entity: a text
	}{
		{"1", sequence.Number(1)},
		{"18446744073709551615", sequence.Number(math.MaxUint64)},
		{"18446744073709551616", sequence.Entity{}},
		{"007", sequence.Entity{}},
		{"-1", sequence.Entity{}},
		{"+1", sequence.Entity{}},
		{"group/7 é", sequence.Entity{}},
		{strings.Repeat("x", sequence.MaxText), sequence.Entity{}},
	} {
		e, err := sequence.Parse(tt.name)
		if err != nil || e.String() != tt.name || (tt.want != sequence.Entity{}) && e != tt.want {
			t.Errorf("%q: %v, %v", tt.name, e, err)
		}
	}
	if e, err := sequence.Parse("0"); err != nil || e != sequence.Number(0) {
		t.Errorf("0: %v, %v", e, err)
	}
	for _, name := range []string{"", strings.Repeat("x", sequence.MaxText+1), "a\xff", "a\x00b"} {
		if e, err := sequence.Parse(name); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%q: %v, %v, want ErrBadRequest", name, e, err)
		}
	}
}

// An entity in another section would repeat its numbers: these values hold for ever.
func TestSectionsNeverChange(t *testing.T) {
	for name, want := range map[string]int{
		"0": 0, "1": 812, "2": 999, "12345678901": 949, "18446744073709551615": 801,
		"alice": 244, "group/7": 381, "007": 840, "é": 571,
	} {
		if got := entity(name).Section(); got != want || spread.Section(name) != want {
			t.Errorf("%q: section %d, for the client %d, want %d", name, got, spread.Section(name), want)
		}
	}
	if sequence.RowName("chat", 7) != "chat/seq/0007" {
		t.Errorf("row %q", sequence.RowName("chat", 7))
	}
}

func TestSectionsAreEven(t *testing.T) {
	for what, of := range map[string]func(i int) sequence.Entity{
		"numbers in a row": func(i int) sequence.Entity { return sequence.Number(uint64(i)) },
		"snowflake IDs":    func(i int) sequence.Entity { return sequence.Number(uint64(i) << 22) },
		"texts": func(i int) sequence.Entity {
			return entity("user:" + strings.Repeat("0", i%7) + string(rune('a'+i%26)) + sequence.Number(uint64(i)).String())
		},
	} {
		var counts [sequence.Sections]int
		const each = 100
		for i := range each * sequence.Sections {
			counts[of(i).Section()]++
		}
		for s, n := range counts {
			if n < each/2 || n > each*3/2 {
				t.Errorf("%s: section %d has %d entities, want about %d", what, s, n, each)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "42", "042", "18446744073709551616", "user:7", "é", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		e, err := sequence.Parse(name)
		if err != nil {
			if !errors.Is(err, leaf.ErrBadRequest) {
				t.Errorf("%q: %v", name, err)
			}
			return
		}
		again, err := sequence.Parse(e.String())
		if e.String() != name || again != e || err != nil {
			t.Errorf("%q: %v, and again %v, %v", name, e, again, err)
		}
		if s := e.Section(); s < 0 || s >= sequence.Sections {
			t.Errorf("%q: section %d", name, s)
		}
	})
}
