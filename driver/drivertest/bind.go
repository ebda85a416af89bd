package drivertest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf/segment"
)

var bindCases = []testCase{
	{"the only database is not one of several", bindAlone},
	{"another rule or name is refused", bindRule},
	{"one of two rules wins", bindRace},
}

var alone = segment.Binding{Store: "default"}

func bindAlone(t *testing.T, b Backend) {
	for range 2 {
		if err := b.Store.Bind(ctx(t), alone); err != nil {
			t.Fatal(err)
		}
	}
	err := b.Store.Bind(ctx(t), segment.Binding{Store: "a", Rule: "r1"})
	switch {
	case b.NoMeta && !errors.Is(err, segment.ErrSchema):
		t.Errorf("Bind to a rule without leaf_meta: %v; want ErrSchema", err)
	case !b.NoMeta && !errors.Is(err, segment.ErrRule):
		t.Errorf("Bind of an only database to a rule: %v; want ErrRule", err)
	}
	if err := b.Store.Bind(ctx(t), segment.Binding{Store: "another name"}); err != nil {
		t.Errorf("Bind of an only database under another name: %v", err)
	}
}

func bindRule(t *testing.T, b Backend) {
	if b.NoMeta {
		t.Skip("this database has no leaf_meta")
	}
	first := segment.Binding{Store: "north", Rule: "fingerprint-1"}
	for range 2 { // the first one records nothing
		if err := b.Store.Bind(ctx(t), first); !errors.Is(err, segment.ErrSchema) {
			t.Fatalf("Bind to a rule that is not recorded: %v; want ErrSchema", err)
		}
	}
	if err := b.Record(t, first); err != nil {
		t.Fatal(err)
	}
	if err := b.Store.Bind(ctx(t), first); err != nil {
		t.Fatal(err)
	}
	for _, other := range []segment.Binding{
		{Store: "north", Rule: "fingerprint-2"},
		{Store: "south", Rule: "fingerprint-1"},
		alone,
	} {
		err := b.Store.Bind(ctx(t), other)
		if !errors.Is(err, segment.ErrRule) {
			t.Errorf("Bind(%+v) after %+v: %v; want ErrRule", other, first, err)
			continue
		}
		for _, part := range []string{first.Store, first.Rule, other.Rule} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("Bind(%+v): %q does not name %q", other, err, part)
			}
		}
	}
	if err := b.Store.Bind(ctx(t), first); err != nil {
		t.Errorf("Bind to the recorded rule: %v", err)
	}
}

func bindRace(t *testing.T, b Backend) {
	if b.NoMeta {
		t.Skip("this database has no leaf_meta")
	}
	bindings := []segment.Binding{{Store: "a", Rule: "r1"}, {Store: "b", Rule: "r2"}}
	errs := make([]error, 16)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = b.Record(t, bindings[i%2]) })
	}
	group.Wait()
	won := slices.IndexFunc(errs, func(err error) bool { return err == nil })
	if won < 0 {
		t.Fatalf("no rule is recorded: %v", errs)
	}
	for i, err := range errs {
		if i%2 != won%2 && err == nil {
			t.Errorf("Record(%+v) succeeds, although %+v has won", bindings[i%2], bindings[won%2])
		}
	}
	for i, binding := range bindings {
		if err := b.Store.Bind(ctx(t), binding); (err == nil) != (i == won%2) || err != nil && !errors.Is(err, segment.ErrRule) {
			t.Errorf("Bind(%+v) = %v, although %+v has won", binding, err, bindings[won%2])
		}
	}
}
