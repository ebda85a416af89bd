package drivertest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/segment"
)

var limitCases = []testCase{
	{"limits are kept", limitsKept},
	{"limits changed by two at once", limitsAtOnce},
	{"limits and options of a tag stay apart", limitsApart},
	{"limits refuse bad values", limitsBad},
	{"limits need their tables", limitsMissing},
}

func (b Backend) noLimits() bool { return b.NoOptions || b.NoLimits }

// wantLimits compares what a store, and another one on the same database, returns.
func wantLimits(t *testing.T, b Backend, tags, clients map[string]limit.Rule) {
	t.Helper()
	stores := []Store{b.Store}
	if b.Other != nil {
		stores = append(stores, b.Other(t))
	}
	for i, s := range stores {
		got, err := s.Limits(ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			what      string
			got, want map[string]limit.Rule
		}{{"tags", got.Tags, tags}, {"clients", got.Clients, clients}} {
			if len(c.got)+len(c.want) == 0 {
				continue
			}
			if diff := gocmp.Diff(c.want, c.got); diff != "" {
				t.Errorf("limits of %s as store %d has them (-want +got):\n%s", c.what, i, diff)
			}
		}
	}
}

type setLimit = func(context.Context, string, limit.Change) (limit.Rule, error)

func limitsKept(t *testing.T, b Backend) {
	if b.noLimits() {
		t.Skip("the tables of this database lack the columns for limits")
	}
	put(t, b, "a", 100, 7)
	put(t, b, "b", 100, 7)
	tags, clients := map[string]limit.Rule{}, map[string]limit.Rule{}
	wantLimits(t, b, tags, clients)
	kinds := map[string]struct {
		rules map[string]limit.Rule
		set   setLimit
	}{"tag": {tags, b.Store.SetTagLimit}, "client": {clients, b.Store.SetClientLimit}}
	for _, c := range []struct {
		kind, name string
		rule       limit.Rule
	}{
		{"tag", "a", limit.Rule{Rate: 5}},
		{"tag", "a", limit.Rule{Quota: 6, Blocked: true}},
		{"tag", "b", limit.Rule{Rate: limit.MaxRate, Quota: limit.MaxRate, Blocked: true}},
		{"tag", "a", limit.Rule{}},
		{"tag", "a", limit.Rule{}},
		{"client", "a", limit.Rule{Blocked: true}},
		{"client", "A", limit.Rule{Rate: 1}},
		{"client", "", limit.Rule{Rate: 2}},
		{"client", strings.Repeat("说", limit.MaxClientLen), limit.Rule{Quota: limit.MaxRate}},
		{"client", "spiffe://x/y?z='\"`\\%", limit.Rule{Quota: 7}},
		{"client", "a", limit.Rule{Rate: 3, Quota: 4}},
		{"client", "A", limit.Rule{}},
		{"client", "never seen", limit.Rule{}},
		{"tag", "b", limit.Rule{Quota: 1}},
	} {
		k := kinds[c.kind]
		if got, err := k.set(ctx(t), c.name, limit.ChangeTo(c.rule)); err != nil || got != c.rule {
			t.Fatalf("set the limit of %s %q to %+v: %+v, %v", c.kind, c.name, c.rule, got, err)
		}
		if delete(k.rules, c.name); c.rule != (limit.Rule{}) {
			k.rules[c.name] = c.rule
		}
		wantLimits(t, b, tags, clients)
	}
}

// limitsAtOnce: each command changes a field of its own, and all of them count.
func limitsAtOnce(t *testing.T, b Backend) {
	if b.noLimits() {
		t.Skip("the tables of this database lack the columns for limits")
	}
	put(t, b, "a", 100, 7)
	stores := []Store{b.Store}
	if b.Other != nil {
		stores = append(stores, b.Other(t))
	}
	for _, of := range []func(Store) setLimit{
		func(s Store) setLimit { return s.SetTagLimit },
		func(s Store) setLimit { return s.SetClientLimit },
	} {
		for round := range int64(5) { // the first finds no row
			want := limit.Rule{Rate: round + 1, Quota: round + 2, Blocked: round%2 == 0}
			var all sync.WaitGroup
			for i, change := range []limit.Change{{Rate: &want.Rate}, {Quota: &want.Quota}, {Blocked: &want.Blocked}} {
				set := of(stores[i%len(stores)])
				all.Go(func() {
					if _, err := set(ctx(t), "a", change); err != nil {
						t.Errorf("round %d, field %d: %v", round, i, err)
					}
				})
			}
			all.Wait()
			if got, err := of(b.Store)(ctx(t), "a", limit.Change{}); err != nil || got != want {
				t.Errorf("round %d: %+v, %v; want %+v: each command changed one field", round, got, err, want)
			}
		}
	}
}

// limitsApart: both live in one row of leaf_tag_option.
func limitsApart(t *testing.T, b Backend) {
	if b.noLimits() {
		t.Skip("the tables of this database lack the columns for limits")
	}
	options := segment.Options{MinStep: 3, MaxStep: 9, FixedStep: true}
	if err := b.Store.Create(ctx(t), segment.NewRow{Tag: "a", Start: 1, Step: 7, Options: options}); err != nil {
		t.Fatal(err)
	}
	rule := limit.Rule{Rate: 5, Quota: 6}
	check := func(step string, o segment.Options, r limit.Rule) {
		t.Helper()
		if row, err := b.Store.Lookup(ctx(t), "a"); err != nil || row.Options != o || row.MaxID != 1 {
			t.Errorf("%s: row %+v, %v; want the options %+v", step, row, err, o)
		}
		want := map[string]limit.Rule{"a": r}
		if r == (limit.Rule{}) {
			want = nil
		}
		wantLimits(t, b, want, nil)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(r limit.Rule) {
		t.Helper()
		_, err := b.Store.SetTagLimit(ctx(t), "a", limit.ChangeTo(r))
		must(err)
	}
	check("created", options, limit.Rule{})
	put(rule)
	check("limited", options, rule)
	must(b.Store.Update(ctx(t), "a", segment.Change{MinStep: new(int64(4))}))
	options.MinStep = 4
	check("options changed", options, rule)
	must(b.Store.Update(ctx(t), "a", segment.Change{MinStep: new(int64(0)), MaxStep: new(int64(0)), FixedStep: new(false)}))
	check("options removed", segment.Options{}, rule)
	must(b.Store.Update(ctx(t), "a", segment.Change{MaxStep: new(int64(8))}))
	put(limit.Rule{})
	check("limit removed", segment.Options{MaxStep: 8}, limit.Rule{})
	put(rule)
	if b.NoMeta {
		return // nothing is deleted there
	}
	must(b.Store.Delete(ctx(t), "a"))
	wantLimits(t, b, nil, nil)
	must(b.Store.Create(ctx(t), segment.NewRow{Tag: "a", Start: 1, Step: 7}))
	check("created anew", segment.Options{}, limit.Rule{})
}

func limitsBad(t *testing.T, b Backend) {
	if b.noLimits() {
		t.Skip("the tables of this database lack the columns for limits")
	}
	put(t, b, "a", 100, 7)
	for _, r := range []limit.Rule{{Rate: -1}, {Quota: -1}, {Rate: limit.MaxRate + 1}, {Quota: limit.MaxRate + 1}} {
		for name, set := range map[string]setLimit{"tag": b.Store.SetTagLimit, "client": b.Store.SetClientLimit} {
			if _, err := set(ctx(t), "a", limit.ChangeTo(r)); !errors.Is(err, leaf.ErrBadRequest) {
				t.Errorf("limit a %s to %+v: %v; want ErrBadRequest", name, r, err)
			}
		}
	}
	some := limit.ChangeTo(limit.Rule{Rate: 1})
	for _, tag := range []string{"", "\xff", strings.Repeat("x", leaf.MaxTagLen+1)} {
		if _, err := b.Store.SetTagLimit(ctx(t), tag, some); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("SetTagLimit(%q): %v; want ErrBadRequest", tag, err)
		}
	}
	for _, client := range []string{"\xff", "a\x00b", "a\n", " a", "a ", strings.Repeat("x", limit.MaxClientLen+1)} {
		if _, err := b.Store.SetClientLimit(ctx(t), client, some); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("SetClientLimit(%q): %v; want ErrBadRequest", client, err)
		}
	}
	for _, tag := range []string{"b", "a ", "A"} {
		if _, err := b.Store.SetTagLimit(ctx(t), tag, some); !errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("SetTagLimit(%q): %v; want ErrUnknownTag", tag, err)
		}
	}
	wantLimits(t, b, nil, nil)
}

func limitsMissing(t *testing.T, b Backend) {
	if !b.noLimits() {
		t.Skip("the tables of this database have the columns for limits")
	}
	put(t, b, "a", 100, 7)
	wantLimits(t, b, nil, nil)
	for name, set := range map[string]setLimit{"tag": b.Store.SetTagLimit, "client": b.Store.SetClientLimit} {
		for _, r := range []limit.Rule{{Rate: 1}, {}} {
			if _, err := set(ctx(t), "a", limit.ChangeTo(r)); !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "leaf schema apply") {
				t.Errorf("limit a %s to %+v: %v; want ErrSchema that names leaf schema apply", name, r, err)
			}
		}
	}
	if _, err := b.Store.Reserve(ctx(t), request("a", 7, 7)); err != nil {
		t.Errorf("Reserve: %v", err)
	}
}
