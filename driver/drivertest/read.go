package drivertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

var readCases = []testCase{
	{"Lookup and Rows return what is stored", readAll},
	{"Rows of an empty table", readNone},
	{"Rows includes what the engine would refuse", readHostile},
	{"many rows", readMany},
	{"context already done", readDone},
}

var ignoreTime = cmpopts.IgnoreFields(segment.Row{}, "UpdateTime")

// longestFormat has as many characters as a format can have, among them those that mean something in SQL.
const longestFormat = `%_?$1'--:;/*{seq:013:crockford}{check:mod97}#&()@[]^` + "`"

func readAll(t *testing.T, b Backend) {
	want := []segment.Row{
		{Tag: "a", MaxID: 0, Step: 7},
		{Tag: "b", MaxID: segment.MaxMaxID, Step: segment.MaxStep, Description: "x' \"\\ % 说明"},
		{Tag: "c", MaxID: 5, Step: 1, Options: segment.Options{MinStep: 7, MaxStep: 13, FixedStep: true}},
		{Tag: "d", MaxID: 5, Step: 1, Options: segment.Options{FixedStep: true}},
		{Tag: "e", MaxID: 5, Step: 1, Options: segment.Options{MaxStep: segment.MaxStep}},
		{Tag: "f", MaxID: 5, Step: 1, Options: segment.Options{Format: longestFormat}},
	}
	for i, row := range want {
		if b.NoText {
			want[i].Description = ""
		}
		if b.NoOptions {
			want[i].Options = segment.Options{}
		}
		if err := b.Store.Create(ctx(t), segment.NewRow{
			Tag: row.Tag, Start: row.MaxID, Step: row.Step, Description: want[i].Description, Options: want[i].Options,
		}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.Store.Rows(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b segment.Row) int { return cmp.Compare(a.Tag, b.Tag) })
	if diff := gocmp.Diff(want, got, ignoreTime); diff != "" {
		t.Errorf("Rows (-want +got):\n%s", diff)
	}
	for _, row := range want {
		one, err := b.Store.Lookup(ctx(t), row.Tag)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(row, one, ignoreTime); diff != "" {
			t.Errorf("Lookup(%q) (-want +got):\n%s", row.Tag, diff)
		}
		if time.Since(one.UpdateTime).Abs() > longest {
			t.Errorf("Lookup(%q): update_time %v, want now", row.Tag, one.UpdateTime)
		}
	}
	for _, tag := range []string{"x", "aa"} {
		if row, err := b.Store.Lookup(ctx(t), tag); !errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("Lookup(%q) = %v, %v; want ErrUnknownTag", tag, row, err)
		}
	}
	if _, err := b.Store.Lookup(ctx(t), ""); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("Lookup of no tag: %v; want ErrBadRequest", err)
	}
}

func readNone(t *testing.T, b Backend) {
	if rows, err := b.Store.Rows(ctx(t)); err != nil || len(rows) != 0 {
		t.Errorf("Rows = %v, %v; want none", rows, err)
	}
	if row, err := b.Store.Lookup(ctx(t), "a"); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("Lookup = %v, %v; want ErrUnknownTag", row, err)
	}
}

func readHostile(t *testing.T, b Backend) {
	want := []segment.Row{
		{Tag: "", MaxID: 1, Step: 1},
		{Tag: "high", MaxID: math.MaxInt64, Step: math.MaxInt32},
		{Tag: "low", MaxID: math.MinInt64, Step: math.MinInt32},
		{Tag: "zero", MaxID: 0, Step: 0},
	}
	for _, row := range want {
		put(t, b, row.Tag, row.MaxID, row.Step)
	}
	got, err := b.Store.Rows(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b segment.Row) int { return cmp.Compare(a.Tag, b.Tag) })
	if diff := gocmp.Diff(want, got, ignoreTime); diff != "" {
		t.Errorf("Rows (-want +got):\n%s", diff)
	}
}

func readMany(t *testing.T, b Backend) {
	const n = 300
	want := make(map[string]int64, n)
	for i := range n {
		tag := fmt.Sprintf("tag %d", i)
		want[tag] = int64(i)
		put(t, b, tag, int64(i), 7)
	}
	rows, err := b.Store.Rows(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int64, n)
	for _, row := range rows {
		got[row.Tag] = row.MaxID
	}
	if diff := gocmp.Diff(want, got); diff != "" || len(rows) != n {
		t.Errorf("Rows: %d rows (-want +got):\n%s", len(rows), diff)
	}
}

func readDone(t *testing.T, b Backend) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Store.Rows(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("Rows: %v; want context.Canceled", err)
	}
	if _, err := b.Store.Lookup(canceled, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("Lookup: %v; want context.Canceled", err)
	}
}
