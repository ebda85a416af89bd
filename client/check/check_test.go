package check_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/check"
)

type reply struct {
	source, tag string
	ranges      []leaf.Range
	want        error
	text        string
}

func TestObserve(t *testing.T) {
	t.Parallel()
	r := func(bounds ...int64) (out []leaf.Range) {
		for i := 0; i < len(bounds); i += 2 {
			out = append(out, leaf.Range{Lo: bounds[i], Hi: bounds[i+1]})
		}
		return out
	}
	for _, tt := range []struct {
		name    string
		replies []reply
	}{
		{"growing", []reply{{"a", "x", r(1, 5), nil, ""}, {"a", "x", r(5, 9, 20, 21), nil, ""}, {"a", "x", r(21, 22), nil, ""}}},
		{"the same ID from another node", []reply{{"a", "x", r(1, 5), nil, ""}, {"b", "x", r(4, 6), check.ErrRepeated, `check: an ID came twice: tag "x": 4, the second time from b`}}},
		{"the same reply twice", []reply{{"a", "x", r(7, 8), nil, ""}, {"a", "x", r(7, 8), check.ErrRepeated, ""}}},
		{"inside a larger one", []reply{{"a", "x", r(1, 100), nil, ""}, {"b", "x", r(50, 51), check.ErrRepeated, ""}}},
		{"around a smaller one", []reply{{"a", "x", r(50, 51), nil, ""}, {"b", "x", r(1, 100), check.ErrRepeated, `check: an ID came twice: tag "x": 50, the second time from b`}}},
		{"neighbours", []reply{{"a", "x", r(5, 10), nil, ""}, {"b", "x", r(1, 5), nil, ""}, {"c", "x", r(10, 11), nil, ""}, {"d", "x", r(10, 11), check.ErrRepeated, ""}}},
		{"lower from another node", []reply{{"a", "x", r(50, 51), nil, ""}, {"b", "x", r(1, 2), nil, ""}}},
		{"back on one source", []reply{{"a", "x", r(50, 51), nil, ""}, {"a", "x", r(1, 2), check.ErrDecreasing, `check: IDs of one source went back: tag "x": 1 after 50 from a`}}},
		{"back within a reply", []reply{{"a", "x", r(50, 51, 1, 2), check.ErrDecreasing, ""}}},
		{"two tags", []reply{{"a", "x", r(1, 5), nil, ""}, {"a", "y", r(1, 5), nil, ""}}},
		{"seen although it was reported", []reply{{"a", "x", r(9, 10), nil, ""}, {"a", "x", r(3, 4), check.ErrDecreasing, ""}, {"b", "x", r(3, 4), check.ErrRepeated, ""}}},
		{"negative and largest", []reply{{"a", "x", r(math.MinInt64, math.MinInt64+1, math.MaxInt64-1, math.MaxInt64), nil, ""}, {"b", "x", r(math.MaxInt64-1, math.MaxInt64), check.ErrRepeated, ""}}},
		{"empty", []reply{{"a", "x", r(5, 5, 9, 3), nil, ""}, {"a", "x", nil, nil, ""}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := check.New(check.Config{})
			for i, re := range tt.replies {
				err := c.Observe(re.source, re.tag, re.ranges)
				if !errors.Is(err, re.want) || re.want == nil && err != nil || re.text != "" && err.Error() != re.text {
					t.Errorf("reply %d: %v, want %v %s", i, err, re.want, re.text)
				}
			}
			if c.Forgotten() != 0 {
				t.Errorf("%d forgotten", c.Forgotten())
			}
		})
	}
}

// TestEnd: a source that ended may begin anew from below.
func TestEnd(t *testing.T) {
	t.Parallel()
	c := check.New(check.Config{})
	one := []leaf.Range{{Lo: 9, Hi: 10}}
	if err := c.Observe("a", "x", one); err != nil {
		t.Fatal(err)
	}
	c.End("a")
	if err := c.Observe("a", "x", []leaf.Range{{Lo: 3, Hi: 4}}); err != nil {
		t.Error(err)
	}
	if err := c.Observe("a", "x", one); !errors.Is(err, check.ErrRepeated) {
		t.Errorf("%v; what came before the end stays seen", err)
	}
}

// TestAgainstAMap compares with the plainest set there is.
func TestAgainstAMap(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		c := check.New(check.Config{})
		seen := map[int64]bool{}
		for range 100 {
			lo := rng.Int64N(300)
			hi := lo + 1 + rng.Int64N(9)
			want := false
			for id := lo; id < hi; id++ {
				want = want || seen[id]
				seen[id] = true
			}
			err := c.Observe("", "x", []leaf.Range{{Lo: lo, Hi: hi}})
			if errors.Is(err, check.ErrRepeated) != want {
				t.Fatalf("[%d, %d): %v, want repeated %v", lo, hi, err, want)
			}
		}
	}
}

// TestMemoryIsBounded: beyond its limits the checker forgets, and says so.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	c := check.New(check.Config{MaxRanges: 100, MaxTags: 2})
	for id := range int64(1000) {
		if err := c.Observe("a", "x", []leaf.Range{{Lo: 2 * id, Hi: 2*id + 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.Forgotten(); n < 900 || n > 920 {
		t.Errorf("%d of 1000 forgotten with room for 100", n)
	}
	if err := c.Observe("b", "x", []leaf.Range{{Lo: 1998, Hi: 1999}}); !errors.Is(err, check.ErrRepeated) {
		t.Errorf("the largest was forgotten: %v", err)
	}
	before := c.Forgotten()
	for _, tag := range []string{"y", "z", "z"} {
		if err := c.Observe("a", tag, []leaf.Range{{Lo: 1, Hi: 3}}); err != nil {
			t.Error(err)
		}
	}
	if n := c.Forgotten() - before; n != 4 {
		t.Errorf("%d IDs of a tag beyond the limit forgotten, want 4", n)
	}
}

// TestSourcesAreBounded: streams come and go for as long as a canary runs.
func TestSourcesAreBounded(t *testing.T) {
	t.Parallel()
	c := check.New(check.Config{MaxSources: 10})
	observe := func(source string, id int64) error {
		return c.Observe(source, "t", []leaf.Range{{Lo: id, Hi: id + 1}})
	}
	if err := errors.Join(observe("first", 100), observe("first", 101)); err != nil {
		t.Fatal(err)
	}
	if err := observe("first", 50); !errors.Is(err, check.ErrDecreasing) {
		t.Fatalf("one source is remembered, and its step back is not seen: %v", err)
	}
	for i := range 10 {
		if err := observe(fmt.Sprint(i), int64(200+i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := observe("first", 20); err != nil {
		t.Errorf("the first of 11 sources is still remembered: %v", err)
	}
	if err := observe("first", 209); !errors.Is(err, check.ErrRepeated) {
		t.Errorf("an ID was forgotten with its source: %v", err)
	}
}
