package snowflake_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leaf-idgen/leaf/snowflake"
)

func TestParseLayout(t *testing.T) {
	own := snowflake.Layout{Epoch: 1700000000000, Unit: 10 * time.Millisecond, TimeBits: 39, DatacenterBits: 2, WorkerBits: 8, SequenceBits: 9}
	recent := snowflake.Leaf()
	recent.Epoch = 1700000000000
	for _, c := range []struct {
		text string
		want snowflake.Layout
	}{
		{"leaf", snowflake.Leaf()},
		{" dc ", snowflake.DC()},
		{"seconds", snowflake.Seconds()},
		{"js53", snowflake.JS53()},
		{"leaf,epoch=1700000000000", recent},
		{"time=41,worker=10,sequence=12", snowflake.Leaf()},
		{"epoch=1700000000000,unit=10ms,time=39,datacenter=2,worker=8,sequence=9", own},
		{" sequence = 9, worker=8 ,datacenter=2,time=39,unit=10ms,epoch=1700000000000", own},
	} {
		t.Run(c.text, func(t *testing.T) {
			got, err := snowflake.ParseLayout(c.text)
			if err != nil || got != c.want {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestParseLayoutRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "must be one of leaf, dc, seconds, js53"},
		{"Leaf", "must be one of"},
		{"leaf,dc", `layout="dc": is no field`},
		{"bits=3", `layout="bits": is no field`},
		{"time=41,", `layout="": is no field`},
		{"time=41,time=40", `has "time" twice`},
		{"time=x", `time="x"`},
		{"time", "must be one of"},
		{"time=41,worker=10,sequence=13", "must be at most 63 bits"},
		{"leaf,unit=5ms", "must be 1ms, 10ms or 1s"},
		{"leaf,unit=1", `unit="1"`},
		{"leaf,epoch=1e3", `epoch="1e3"`},
		{"leaf,epoch=9223372036854775808", "epoch="},
		{"leaf," + strings.Repeat("x", 1000) + "=1", "..."},
	} {
		t.Run(c.text, func(t *testing.T) {
			got, err := snowflake.ParseLayout(c.text)
			if !errors.Is(err, snowflake.ErrInvalid) || got != (snowflake.Layout{}) {
				t.Fatalf("got %v, %v; want ErrInvalid and no layout", got, err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
			if len(err.Error()) > 300 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

// TestJS53KeepsItsPromise: whatever is changed on js53, a JavaScript number holds every ID exactly,
// and the IDs last until 2050.
func TestJS53KeepsItsPromise(t *testing.T) {
	for _, c := range []struct{ text, refused string }{
		{"js53,worker=10,sequence=5", ""},
		{"js53,epoch=1700000000000,time=37,worker=7", ""},
		{"js53,unit=1s,time=31,worker=8,sequence=14", ""},
		{"time=38,unit=10ms,worker=8,sequence=9", ""}, // no js53
		{"js53,worker=7", "time+datacenter+worker+sequence=54: must be at most 53 bits with js53"},
		{"js53,datacenter=1", "time+datacenter+worker+sequence=54"},
		{"js53,time=39", "time+datacenter+worker+sequence=54"},
		{"js53,sequence=10", "time+datacenter+worker+sequence=54"},
		{"js53,time=36,worker=8", "time=36: must last until 2050-01-01 with js53; from epoch=1288834974657, with unit=10ms, it lasts until 2032-08-13"},
		{"js53,unit=1ms", "with unit=1ms, it lasts until 2019-07-21"},
	} {
		l, err := snowflake.ParseLayout(c.text)
		if c.refused == "" && (err != nil || l.Bits() < 53) || c.refused != "" && (!errors.Is(err, snowflake.ErrInvalid) || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: %v, %v; want refused: %q", c.text, l, err, c.refused)
		}
	}
}

// TestLayoutText: what String writes, ParseLayout reads.
func TestLayoutText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		if got, err := snowflake.ParseLayout(l.String()); err != nil || got != l {
			t.Fatalf("ParseLayout(%q) = %v, %v", l.String(), got, err)
		}
	})
}

// FuzzParseLayout: no text makes it panic; what it accepts is valid and comes back
// from its own text.
func FuzzParseLayout(f *testing.F) {
	for _, seed := range []string{"leaf", "js53,epoch=0", "epoch=1,unit=1s,time=32,worker=10,sequence=21", "time=43,sequence=19", "a=b,=,", "leaf,time=-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := snowflake.ParseLayout(text)
		if err != nil {
			if !errors.Is(err, snowflake.ErrInvalid) || l != (snowflake.Layout{}) {
				t.Fatalf("%v with %v", err, l)
			}
			return
		}
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		if back, err := snowflake.ParseLayout(l.String()); err != nil || back != l {
			t.Fatalf("%q gave %v, whose text gives %v, %v", text, l, back, err)
		}
	})
}
