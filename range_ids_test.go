package leaf_test

import (
	"math"
	"slices"
	"testing"

	"github.com/leaf-idgen/leaf"
)

// TestIDs iterates over ranges, empty ones and the highest ID included, and stops early.
func TestIDs(t *testing.T) {
	for _, c := range []struct {
		name   string
		ranges []leaf.Range
		want   []int64
	}{
		{"none", nil, nil},
		{"one", []leaf.Range{{Lo: 3, Hi: 6}}, []int64{3, 4, 5}},
		{"two with an empty one between them", []leaf.Range{{Lo: 1, Hi: 3}, {Lo: 5, Hi: 5}, {Lo: 9, Hi: 10}}, []int64{1, 2, 9}},
		{"inverted", []leaf.Range{{Lo: 9, Hi: 1}}, nil},
		{"the top", []leaf.Range{{Lo: math.MaxInt64 - 1, Hi: math.MaxInt64}}, []int64{math.MaxInt64 - 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := slices.Collect(leaf.IDs(c.ranges)); !slices.Equal(got, c.want) {
				t.Errorf("IDs = %v, want %v", got, c.want)
			}
		})
	}
	for id := range leaf.IDs([]leaf.Range{{Lo: 1, Hi: math.MaxInt64}}) {
		if id == 3 {
			return
		}
	}
}
