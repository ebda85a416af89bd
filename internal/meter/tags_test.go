package meter_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/meter"
	"github.com/leaf-idgen/leaf/segment"
)

func names(list []segment.Usage) (all []string) {
	for _, u := range list {
		all = append(all, u.Tag)
	}
	return all
}

func TestTheBusiestAreNamed(t *testing.T) {
	t.Parallel()
	var all []segment.Usage
	for i := range 1000 {
		all = append(all, segment.Usage{Tag: fmt.Sprintf("tag-%03d", i), Rate: float64(i * 7 % 1000), Issued: 10, Stock: 5, Latched: i < 100, Failures: i / 900})
	}
	named, rest := meter.NewTags(3).Look(time.Now(), slices.Values(all))
	if got, want := names(named), []string{"tag-143", "tag-714", "tag-857"}; len(got) != 3 {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, u := range named {
		if u.Rate < 997 {
			t.Errorf("%s is named with rate %v", u.Tag, u.Rate)
		}
	}
	if rest.Tags != 997 || rest.Issued != 9970 || rest.Stock != 4985 {
		t.Errorf("the rest: %+v", rest)
	}
}

// TestPlaces: who is named, look after look.
func TestPlaces(t *testing.T) {
	t.Parallel()
	tags, now := meter.NewTags(2), time.Unix(0, 0)
	for _, step := range []struct {
		name  string
		after time.Duration
		rates map[string]float64
		want  []string
	}{
		{"two are busiest", 0, map[string]float64{"a": 10, "b": 20, "c": 5}, []string{"a", "b"}},
		{"a new one must wait", time.Minute, map[string]float64{"a": 10, "b": 20, "c": 500}, []string{"a", "b"}},
		{"not twice as busy", 9 * time.Minute, map[string]float64{"a": 10, "b": 20, "c": 15}, []string{"a", "b"}},
		{"twice as busy as the quietest", time.Second, map[string]float64{"a": 10, "b": 20, "c": 25}, []string{"b", "c"}},
		{"a deleted one leaves its place", time.Second, map[string]float64{"a": 1, "c": 25}, []string{"a", "c"}},
		{"all are gone", time.Second, nil, nil},
		{"one named like the rest", time.Second, map[string]float64{meter.Other: 100, "a": 1}, []string{"a"}},
	} {
		now = now.Add(step.after)
		var all []segment.Usage
		for tag, rate := range step.rates {
			all = append(all, segment.Usage{Tag: tag, Rate: rate, Stock: 1})
		}
		named, rest := tags.Look(now, slices.Values(all))
		if got := names(named); !slices.Equal(got, step.want) {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
		if rest.Tags != len(all)-len(named) {
			t.Errorf("%s: %d in the rest", step.name, rest.Tags)
		}
	}
}

// TestLimitOfTagsChanges: a lower limit takes the places of the quietest tags, however short they had
// them. What these issue from then on is that of the rest.
func TestLimitOfTagsChanges(t *testing.T) {
	t.Parallel()
	tags, now := meter.NewTags(3), time.Unix(0, 0)
	all := []segment.Usage{{Tag: "a", Rate: 1}, {Tag: "b", Rate: 3}, {Tag: "c", Rate: 2}}
	for _, step := range []struct {
		limit  int
		want   []string
		issued int64 // of the rest
	}{{3, []string{"a", "b", "c"}, 0}, {1, []string{"b"}, 0}, {1, []string{"b"}, 20}, {2, []string{"b", "c"}, 40}, {0, nil, 50}} {
		tags.SetLimit(step.limit)
		now = now.Add(time.Second)
		named, rest := tags.Look(now, slices.Values(all))
		if got := names(named); !slices.Equal(got, step.want) || rest.Issued != step.issued || rest.Tags != len(all)-len(named) {
			t.Errorf("limit %d: %q, the rest %+v; want %q and %d issued", step.limit, got, rest, step.want, step.issued)
		}
		for i := range all {
			all[i].Issued += 10
		}
	}
}

// TestIssuedOfTheRest counts what tags issue while they are not named, and never falls.
func TestIssuedOfTheRest(t *testing.T) {
	t.Parallel()
	tags, now := meter.NewTags(1), time.Unix(0, 0)
	for _, step := range []struct {
		name  string
		after time.Duration
		all   []segment.Usage
		want  int64
	}{
		{"first", 0, []segment.Usage{{Tag: "a", Rate: 9, Issued: 100}, {Tag: "b", Issued: 10}, {Tag: "c", Issued: 1}}, 11},
		{"all issue", time.Second, []segment.Usage{{Tag: "a", Rate: 9, Issued: 200}, {Tag: "b", Issued: 20}, {Tag: "c", Issued: 2}}, 22},
		{"b takes the place, after it issued 980", time.Hour, []segment.Usage{{Tag: "a", Rate: 9, Issued: 300}, {Tag: "b", Rate: 99, Issued: 1000}, {Tag: "c", Issued: 2}}, 1002},
		{"a is in the rest", time.Second, []segment.Usage{{Tag: "a", Rate: 9, Issued: 301}, {Tag: "b", Rate: 99, Issued: 5000}, {Tag: "c", Issued: 2}}, 1003},
		{"a is deleted", time.Second, []segment.Usage{{Tag: "b", Rate: 99, Issued: 6000}, {Tag: "c", Issued: 3}}, 1003},
		{"c goes on", time.Second, []segment.Usage{{Tag: "b", Rate: 99, Issued: 6000}, {Tag: "c", Issued: 10}}, 1010},
		{"b is deleted", time.Second, []segment.Usage{{Tag: "c", Issued: 11}}, 1011},
	} {
		now = now.Add(step.after)
		if _, rest := tags.Look(now, slices.Values(step.all)); rest.Issued != step.want {
			t.Errorf("%s: got %d, want %d", step.name, rest.Issued, step.want)
		}
	}
}

func TestNoneIsNamed(t *testing.T) {
	t.Parallel()
	named, rest := meter.NewTags(0).Look(time.Now(), slices.Values([]segment.Usage{{Tag: "a", Issued: 3, Stock: 8, Rate: 2}}))
	if len(named) != 0 || rest.Tags != 1 || rest.Issued != 3 || rest.Lasts != 4 {
		t.Errorf("got %v and %+v", named, rest)
	}
}
