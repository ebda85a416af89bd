package drivertest

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

var catalogCases = []testCase{
	{"Create", create},
	{"Create refuses bad values", createBad},
	{"Create of one tag by many", createRace},
	{"Update", update},
	{"Update refuses bad values", updateBad},
	{"Update repairs an invalid row", updateRepair},
	{"Delete", deleteRow},
	{"Delete needs the board", deleteWithoutBoard},
	{"Create after Delete", createAfterDelete},
	{"Create beside Delete", createBesideDelete},
	{"Create below what the board knows", createBelowBoard},
	{"RowsAfter", rowsAfter},
	{"options need their table", optionsMissing},
	{"a description needs its column", textMissing},
}

func create(t *testing.T, b Backend) {
	for _, start := range []int64{0, 1, 1_000_000, segment.MaxMaxID - 7} {
		tag := "tag" + strings.Repeat("x", int(start%97))
		if err := b.Store.Create(ctx(t), segment.NewRow{Tag: tag, Start: start, Step: 7}); err != nil {
			t.Fatal(err)
		}
		res, err := b.Store.Reserve(ctx(t), request(tag, 7, 7))
		if want := (leaf.Range{Lo: start, Hi: start + 7}); err != nil || res.Range != want {
			t.Errorf("first range of a row created at %d = %v, %v; want %v", start, res, err, want)
		}
		err = b.Store.Create(ctx(t), segment.NewRow{Tag: tag, Start: 1, Step: 13})
		if !errors.Is(err, leaf.ErrConflict) {
			t.Errorf("Create again: %v; want ErrConflict", err)
		}
		if row, err := b.Store.Lookup(ctx(t), tag); err != nil || row.Step != 7 || row.MaxID != start+7 {
			t.Errorf("after the refused Create: %v, %v", row, err)
		}
	}
}

func createBad(t *testing.T, b Backend) {
	for _, row := range []segment.NewRow{
		{Tag: "", Start: 1, Step: 1},
		{Tag: strings.Repeat("x", 129), Start: 1, Step: 1},
		{Tag: "a\x00b", Start: 1, Step: 1},
		{Tag: "\xff", Start: 1, Step: 1},
		{Tag: "a", Start: -1, Step: 1},
		{Tag: "a", Start: segment.MaxMaxID + 1, Step: 1},
		{Tag: "a", Start: 1, Step: 0},
		{Tag: "a", Start: 1, Step: -1},
		{Tag: "a", Start: 1, Step: segment.MaxStep + 1},
		{Tag: "a", Start: 1, Step: math.MaxInt64},
		{Tag: "a", Start: 1, Step: 1, Description: strings.Repeat("说", 257)},
		{Tag: "a", Start: 1, Step: 1, Description: "\xff"},
		{Tag: "a", Start: 1, Step: 1, Options: segment.Options{MinStep: -1}},
		{Tag: "a", Start: 1, Step: 1, Options: segment.Options{MinStep: 7, MaxStep: 5}},
		{Tag: "a", Start: 1, Step: 1, Options: segment.Options{MaxStep: segment.MaxStep + 1}},
		{Tag: "a", Start: 1, Step: 1, Options: segment.Options{Format: "INV"}},
		{Tag: "a", Start: 1, Step: 1, Options: segment.Options{Order: "any"}},
		{Tag: "a", Start: 1, Step: 1, Options: segment.Options{Period: "day", PeriodZone: "Local"}},
		{Tag: "a", Start: 1, Step: 1, Options: segment.Options{PeriodZone: "Europe/Berlin"}},
		{Tag: "a", Start: 1, Step: 1, Options: segment.Options{Period: "day", Format: "{seq:08}"}},
		{Tag: "a", Start: 1, Step: 1, Options: segment.Options{Period: "day", Format: "{yyyyMM}{seq:08}"}},
		{Tag: "a", Start: 1 << 60, Step: 1, Options: segment.Options{Period: "year"}},
	} {
		if err := b.Store.Create(ctx(t), row); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Create(%+v): %v; want ErrBadRequest", row, err)
		}
	}
	if rows, err := b.Store.Rows(ctx(t)); err != nil || len(rows) != 0 {
		t.Errorf("Rows after refused creations = %v, %v", rows, err)
	}
}

func createRace(t *testing.T, b Backend) {
	errs := make([]error, 8)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			errs[i] = b.Store.Create(ctx(t), segment.NewRow{Tag: "a", Start: int64(i), Step: 7})
		})
	}
	group.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won >= 0:
			t.Errorf("Create succeeded for %d and %d", won, i)
		case err == nil:
			won = i
		case !errors.Is(err, leaf.ErrConflict):
			t.Errorf("Create %d: %v; want ErrConflict", i, err)
		}
	}
	if got := maxID(t, b.Store, "a"); got != int64(won) {
		t.Errorf("max_id = %d after Create at %d", got, won)
	}
}

func update(t *testing.T, b Backend) {
	want := segment.Row{Tag: "a", MaxID: 100, Step: 7}
	if err := b.Store.Create(ctx(t), segment.NewRow{Tag: "a", Start: 100, Step: 7}); err != nil {
		t.Fatal(err)
	}
	put(t, b, "b", 100, 7)
	changes := []segment.Change{
		{},
		{Step: new(int64(13))},
		{MaxID: new(int64(100))},
		{MaxID: new(int64(1000)), Step: new(int64(segment.MaxStep))},
		{MaxID: new(int64(segment.MaxMaxID))},
	}
	if !b.NoText {
		changes = append(changes, segment.Change{Description: new("说明")}, segment.Change{Description: new("")})
	}
	if !b.NoOptions {
		changes = append(changes,
			segment.Change{MinStep: new(int64(5))},
			segment.Change{MaxStep: new(int64(50)), FixedStep: new(true)},
			segment.Change{MinStep: new(int64(0)), Step: new(int64(3))},
			segment.Change{MaxStep: new(int64(0)), FixedStep: new(false)},
			segment.Change{Format: new("INV-{seq:08}")},
			segment.Change{Format: new("INV-{seq:09}"), MinStep: new(int64(2))},
			segment.Change{Format: new("")},
			segment.Change{Format: new("INV-{seq:08:36}")},
			segment.Change{Order: new(segment.OrderStrict)},
			segment.Change{Order: new(segment.OrderPlain), MinStep: new(int64(0))})
	}
	for _, c := range changes {
		if err := b.Store.Update(ctx(t), "a", c); err != nil {
			t.Fatalf("Update(%+v): %v", c, err)
		}
		if c.MaxID != nil {
			want.MaxID = *c.MaxID
		}
		if c.Step != nil {
			want.Step = *c.Step
		}
		if c.Description != nil {
			want.Description = *c.Description
		}
		want.Options = c.ApplyTo(want.Options)
		got, err := b.Store.Lookup(ctx(t), "a")
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, got, ignoreTime); diff != "" {
			t.Errorf("after Update(%+v) (-want +got):\n%s", c, diff)
		}
	}
	if got, err := b.Store.Lookup(ctx(t), "b"); err != nil || got.MaxID != 100 || got.Step != 7 {
		t.Errorf("another row became %v, %v", got, err)
	}
}

func updateBad(t *testing.T, b Backend) {
	put(t, b, "a", 100, 7)
	for _, c := range []struct {
		change segment.Change
		want   error
	}{
		{segment.Change{MaxID: new(int64(99))}, leaf.ErrConflict},
		{segment.Change{MaxID: new(int64(0)), Step: new(int64(13))}, leaf.ErrConflict},
		{segment.Change{MaxID: new(int64(-1))}, leaf.ErrBadRequest},
		{segment.Change{MaxID: new(int64(segment.MaxMaxID + 1))}, leaf.ErrBadRequest},
		{segment.Change{Step: new(int64(0))}, leaf.ErrBadRequest},
		{segment.Change{Step: new(int64(segment.MaxStep + 1)), MaxID: new(int64(500))}, leaf.ErrBadRequest},
		{segment.Change{Description: new(strings.Repeat("x", 257))}, leaf.ErrBadRequest},
		{segment.Change{MinStep: new(int64(-1))}, leaf.ErrBadRequest},
		{segment.Change{MinStep: new(int64(8)), MaxStep: new(int64(7)), Step: new(int64(13))}, leaf.ErrBadRequest},
		{segment.Change{Format: new("INV-{seq:8}"), Step: new(int64(13))}, leaf.ErrBadRequest},
		{segment.Change{Format: new("INV-{yy}-{seq:08}")}, leaf.ErrBadRequest},
		{segment.Change{Order: new("STRICT"), Step: new(int64(13))}, leaf.ErrBadRequest},
		{segment.Change{Period: new("week")}, leaf.ErrBadRequest},
	} {
		if err := b.Store.Update(ctx(t), "a", c.change); !errors.Is(err, c.want) {
			t.Errorf("Update(%+v): %v; want %v", c.change, err, c.want)
		}
	}
	if err := b.Store.Update(ctx(t), "b", segment.Change{Step: new(int64(1))}); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("Update of an unknown tag: %v", err)
	}
	got, err := b.Store.Lookup(ctx(t), "a")
	if diff := gocmp.Diff(segment.Row{Tag: "a", MaxID: 100, Step: 7}, got, ignoreTime); err != nil || diff != "" {
		t.Errorf("after refused updates: %v (-want +got):\n%s", err, diff)
	}
	if b.NoOptions {
		return
	}
	if err := b.Store.Update(ctx(t), "a", segment.Change{MaxStep: new(int64(7))}); err != nil {
		t.Fatal(err)
	}
	if err := b.Store.Update(ctx(t), "a", segment.Change{Format: new("INV-{yyyy}-{seq:08}")}); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("Update to a format with a date, without a period: %v; want ErrBadRequest", err)
	}
	if err := b.Store.Update(ctx(t), "a", segment.Change{MinStep: new(int64(8)), Step: new(int64(13))}); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("Update to a min_step above the stored max_step: %v; want ErrBadRequest", err)
	}
	if row, err := b.Store.Lookup(ctx(t), "a"); err != nil || row.Step != 7 || row.Options != (segment.Options{MaxStep: 7}) {
		t.Errorf("after the refused update: %v, %v; it must be all or nothing", row, err)
	}
	daily := segment.NewRow{Tag: "daily", Start: 1, Step: 7, Options: segment.Options{Period: "day", PeriodZone: "Europe/Berlin", Format: "{yyyyMMdd}{seq:06}"}}
	if err := b.Store.Create(ctx(t), daily); err != nil {
		t.Fatal(err)
	}
	if err := b.Store.Update(ctx(t), "daily", segment.Change{PeriodZone: new("UTC")}); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("Update to another time zone: %v; want ErrConflict", err)
	}
	later := segment.Change{MaxID: new(int64(1 << 60))}
	if err := b.Store.Update(ctx(t), "daily", later); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("Update to a max_id of a later period: %v; want ErrConflict", err)
	}
	later.Period = new("year")
	if err := b.Store.Update(ctx(t), "a", later); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("Update to a period and a max_id of a later one: %v; want ErrConflict", err)
	}
	if err := b.Store.Update(ctx(t), "daily", segment.Change{MaxID: new(int64(5))}); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("Update to a max_id of an earlier period: %v; want ErrConflict", err)
	}
	berlin, err := time.LoadLocation(daily.PeriodZone)
	if err != nil {
		t.Fatal(err)
	}
	year, month, day := time.Now().In(berlin).Add(30 * time.Minute).Date() // in the last hour of a day, also the next one is none of a later period
	number := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()/86400<<37 + 5
	if err := b.Store.Update(ctx(t), "daily", segment.Change{MaxID: &number}); err != nil {
		t.Errorf("Update of max_id within its period: %v", err)
	}
	if row, err := b.Store.Lookup(ctx(t), "daily"); err != nil || row.Options != daily.Options || row.MaxID != number {
		t.Errorf("after the refused updates: %v, %v; want %v and max_id %d", row, err, daily.Options, number)
	}
	daily.Tag, daily.Start = "daily2", number-5-3<<37
	if err := b.Store.Create(ctx(t), daily); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("Create with a start of an earlier period: %v; want ErrBadRequest", err)
	}
	decimal := segment.Options{MaxStep: 7, Format: "INV-{seq:08}"}
	if err := b.Store.Update(ctx(t), "a", segment.Change{Format: &decimal.Format}); err != nil {
		t.Fatal(err)
	}
	if err := b.Store.Update(ctx(t), "a", segment.Change{Format: new("INV-{seq:08:36}"), MaxStep: new(int64(9))}); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("Update to a format that can repeat a text of the stored one: %v; want ErrConflict", err)
	}
	if row, err := b.Store.Lookup(ctx(t), "a"); err != nil || row.Options != decimal {
		t.Errorf("after the refused format: %v, %v; it must be all or nothing", row, err)
	}
}

func updateRepair(t *testing.T, b Backend) {
	put(t, b, "step", 100, -7)
	put(t, b, "both", -100, 0)
	if err := b.Store.Update(ctx(t), "step", segment.Change{Step: new(int64(7))}); err != nil {
		t.Errorf("Update of an invalid step: %v", err)
	}
	if err := b.Store.Update(ctx(t), "both", segment.Change{MaxID: new(int64(50))}); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "leaf tag repair TAG") {
		t.Errorf("Update of a max_id below 0: %v; want ErrConflict that names the repair", err)
	}
	if _, err := b.Store.Raise(ctx(t), "both", 50); err != nil {
		t.Errorf("Raise of a max_id below 0: %v", err)
	}
	if err := b.Store.Update(ctx(t), "both", segment.Change{Step: new(int64(7))}); err != nil {
		t.Errorf("Update of the other: %v", err)
	}
	for tag, lo := range map[string]int64{"step": 100, "both": 50} {
		res, err := b.Store.Reserve(ctx(t), request(tag, 7, 7))
		if want := (leaf.Range{Lo: lo, Hi: lo + 7}); err != nil || res.Range != want {
			t.Errorf("Reserve(%q) after the repair = %v, %v; want %v", tag, res, err, want)
		}
	}
}

func deleteRow(t *testing.T, b Backend) {
	if b.NoMeta {
		t.Skip("this database has no board")
	}
	row := segment.NewRow{Tag: "a", Start: 100, Step: 7}
	if !b.NoOptions {
		row.Options = segment.Options{FixedStep: true, Order: segment.OrderStrict}
	}
	if err := b.Store.Create(ctx(t), row); err != nil {
		t.Fatal(err)
	}
	put(t, b, "b", 5, 7)
	if err := b.Store.Delete(ctx(t), "a"); err != nil {
		t.Fatal(err)
	}
	if err := b.Store.Delete(ctx(t), "a"); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("Delete again: %v; want ErrUnknownTag", err)
	}
	if _, err := b.Store.Reserve(ctx(t), request("a", 7, 7)); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("Reserve of a deleted tag: %v; want ErrUnknownTag", err)
	}
	if err := b.Store.Create(ctx(t), segment.NewRow{Tag: "a", Start: 100, Step: 7, Options: segment.Options{Order: segment.OrderPlain}}); err != nil {
		t.Fatal(err)
	}
	if row, err := b.Store.Lookup(ctx(t), "a"); err != nil || row.Options != (segment.Options{}) {
		t.Errorf("a tag created anew has the options of the old one: %v, %v", row, err)
	}
	if got := maxID(t, b.Store, "b"); got != 5 {
		t.Errorf("max_id of another tag went to %d", got)
	}
}

func optionsMissing(t *testing.T, b Backend) {
	if !b.NoOptions {
		t.Skip("this database has leaf_tag_option")
	}
	put(t, b, "a", 5, 7)
	if err := b.Store.Update(ctx(t), "a", segment.Change{Step: new(int64(9)), FixedStep: new(true)}); !errors.Is(err, segment.ErrSchema) {
		t.Errorf("Update of options: %v; want ErrSchema", err)
	}
	if row, err := b.Store.Lookup(ctx(t), "a"); err != nil || row.Step != 7 {
		t.Errorf("after the refused update: %v, %v", row, err)
	}
	err := b.Store.Create(ctx(t), segment.NewRow{Tag: "b", Start: 1, Step: 7, Options: segment.Options{MinStep: 1}})
	if !errors.Is(err, segment.ErrSchema) {
		t.Errorf("Create with options: %v; want ErrSchema", err)
	}
}

func textMissing(t *testing.T, b Backend) {
	if !b.NoText {
		t.Skip("this database has a text column")
	}
	put(t, b, "a", 5, 7)
	if err := b.Store.Update(ctx(t), "a", segment.Change{Description: new("x")}); !errors.Is(err, segment.ErrSchema) {
		t.Errorf("Update of the description: %v; want ErrSchema", err)
	}
	if err := b.Store.Create(ctx(t), segment.NewRow{Tag: "b", Start: 1, Step: 7, Description: "x"}); !errors.Is(err, segment.ErrSchema) {
		t.Errorf("Create with a description: %v; want ErrSchema", err)
	}
}

// rowsAfter walks over all rows by pages of each size: each row comes once, in the order
// of the bytes of its name, with its own options.
func rowsAfter(t *testing.T, b Backend) {
	var want []string
	for _, tag := range []string{"B", "a", "a ", "a!", "aB", "ab", "b", "z", "Ä", "ä", "中"} {
		own := segment.Options{MinStep: int64(len(want) + 1)}
		if b.NoOptions {
			own = segment.Options{}
		}
		if err := b.Store.Create(ctx(t), segment.NewRow{Tag: tag, Start: int64(100 - len(want)), Step: 5, Options: own}); err != nil {
			if errors.Is(err, leaf.ErrConflict) {
				continue // the column cannot tell it from another one
			}
			t.Fatal(err)
		}
		want = append(want, tag)
	}
	options := make(map[string]int64, len(want))
	for _, tag := range want {
		row, err := b.Store.Lookup(ctx(t), tag)
		if err != nil {
			t.Fatal(err)
		}
		options[tag] = row.Options.MinStep
	}
	slices.Sort(want)
	for limit := 1; limit <= len(want)+1; limit++ {
		var got []string
		after := ""
		for {
			page, err := b.Store.RowsAfter(ctx(t), after, limit)
			if err != nil || len(page) > limit {
				t.Fatalf("RowsAfter(%q, %d): %d rows, %v", after, limit, len(page), err)
			}
			for _, row := range page {
				got = append(got, row.Tag)
				if row.Problem != nil || row.Step != 5 || row.Options.MinStep != options[row.Tag] {
					t.Errorf("RowsAfter(%q, %d): %+v, want the min_step %d", after, limit, row, options[row.Tag])
				}
			}
			if len(page) < limit || len(got) > len(want) {
				break
			}
			after = page[limit-1].Tag
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("pages of %d rows (-want +got):\n%s", limit, diff)
		}
	}
}
