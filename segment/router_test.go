package segment_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

func rules(t testing.TB, texts ...string) []segment.TagRule {
	t.Helper()
	var out []segment.TagRule
	for _, text := range texts {
		r, err := segment.ParseTagRule(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestRoute(t *testing.T) {
	stores := []segment.NamedStore{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	r, err := segment.NewRouter(stores, rules(t, "order.vip=b", "order*=a", "a=b=b"))
	if err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[string]string{
		"order": "a", "order.pay": "a", "order.vip": "b", "order.vip2": "a", "a=b": "b", "ORDER": "", "": "",
	} {
		got := stores[r.Route(tag)].Name
		if want == "" && got != "c" && got != "d" || want != "" && got != want {
			t.Errorf("%q goes to %s, want %s", tag, got, want)
		}
	}
	spread := map[int]int{}
	for i := range 1000 {
		spread[r.Route(fmt.Sprint("user-", i))]++
	}
	if len(spread) != 2 || spread[2] < 400 || spread[3] < 400 {
		t.Errorf("tags without a rule spread as %v, want about half on each of c and d", spread)
	}
	all, err := segment.NewRouter(stores[:1], rules(t, "order*=a"))
	if err != nil {
		t.Fatal(err)
	}
	if got := all.Route("user"); got != -1 {
		t.Errorf("a tag without a rule goes to %d, want -1", got)
	}
}

// TestRouteIsFixed: a changed hash would send tags to another database than the
// one that holds their row.
func TestRouteIsFixed(t *testing.T) {
	r, err := segment.NewRouter([]segment.NamedStore{{Name: "a"}, {Name: "b"}, {Name: "c"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, tag := range []string{"order", "pay", "user", "im", "订单", "a/b"} {
		got += fmt.Sprint(r.Route(tag))
	}
	if want := routeGolden; got != want {
		t.Errorf("routes %s, want %s", got, want)
	}
	if got, want := r.Fingerprint(), fingerprintGolden; got != want {
		t.Errorf("fingerprint %s, want %s", got, want)
	}
}

func TestRouterRefuses(t *testing.T) {
	for name, build := range map[string]func() error{
		"no store": func() error { _, err := segment.NewRouter(nil, nil); return err },
		"name twice": func() error {
			_, err := segment.NewRouter([]segment.NamedStore{{Name: "a"}, {Name: "a"}}, nil)
			return err
		},
		"empty name": func() error { _, err := segment.NewRouter([]segment.NamedStore{{Name: ""}}, nil); return err },
		"unknown store": func() error {
			_, err := segment.NewRouter([]segment.NamedStore{{Name: "a"}}, rules(t, "x=b"))
			return err
		},
		"no separator":  func() error { _, err := segment.ParseTagRule("order"); return err },
		"no store name": func() error { _, err := segment.ParseTagRule("order="); return err },
		"no pattern":    func() error { _, err := segment.ParseTagRule("=a"); return err },
		"star inside":   func() error { _, err := segment.ParseTagRule("a*b=a"); return err },
	} {
		if err := build(); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%s: error = %v, want a bad request", name, err)
		}
	}
}

func TestFingerprint(t *testing.T) {
	a, b := segment.NamedStore{Name: "a"}, segment.NamedStore{Name: "b"}
	prints := map[string]string{}
	for name, build := range map[string]func() (*segment.Router, error){
		"a b":         func() (*segment.Router, error) { return segment.NewRouter([]segment.NamedStore{a, b}, nil) },
		"b a":         func() (*segment.Router, error) { return segment.NewRouter([]segment.NamedStore{b, a}, nil) },
		"a b, x to a": func() (*segment.Router, error) { return segment.NewRouter([]segment.NamedStore{a, b}, rules(t, "x=a")) },
		"a b, x to b": func() (*segment.Router, error) { return segment.NewRouter([]segment.NamedStore{a, b}, rules(t, "x=b")) },
	} {
		r, err := build()
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := prints[r.Fingerprint()]; ok {
			t.Errorf("%s and %s have one fingerprint", name, other)
		}
		prints[r.Fingerprint()] = name
	}
	single, err := segment.NewRouter([]segment.NamedStore{a}, nil)
	if err != nil || single.Fingerprint() != "" {
		t.Errorf("one store: fingerprint %q, %v; want none", single.Fingerprint(), err)
	}
}

// FuzzTagRule: an accepted rule reads back as itself, routes every tag to a
// configured store, and matches what it says.
func FuzzTagRule(f *testing.F) {
	for _, s := range []string{"order*=a", "order=a", "*=a", "a=b=a", "=", "**=a", "订单*=a"} {
		f.Add(s, "order.pay")
	}
	f.Fuzz(func(t *testing.T, text, tag string) {
		r, err := segment.ParseTagRule(text)
		if err != nil {
			return
		}
		if got := r.Pattern + "=" + r.Store; got != text {
			t.Fatalf("%q read as %q", text, got)
		}
		router, err := segment.NewRouter([]segment.NamedStore{{Name: r.Store}, {Name: r.Store + "2"}}, []segment.TagRule{r})
		if err != nil {
			return
		}
		if got := router.Route(tag); r.Matches(tag) != (got == 0) {
			t.Fatalf("rule %q, tag %q: routed to %d", text, tag, got)
		}
	})
}

// TestDatabasesByTag: each tag lives in its database; one that is down takes only
// its own tags with it; rows in the wrong database are not served.
func TestDatabasesByTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newStore(segment.Row{Tag: "order.1", MaxID: 100, Step: 10}, segment.Row{Tag: "user.1", MaxID: 7000, Step: 10})
		users := newStore(segment.Row{Tag: "user.1", MaxID: 200, Step: 10}, segment.Row{Tag: "order.1", MaxID: 9000, Step: 10})
		router, err := segment.NewRouter([]segment.NamedStore{{Name: "orders", Store: orders}, {Name: "users", Store: users}}, rules(t, "order*=orders", "user*=users"))
		if err != nil {
			t.Fatal(err)
		}
		orders.breakDown()
		a := newRouted(t, router, newDisk(), segment.Config{})
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if id := next(t, a, "user.1"); id != 200 {
			t.Errorf("user.1 = %d, want 200", id)
		}
		_, err = a.Next(t.Context(), "order.1")
		wantErr(t, err, leaf.ErrNotReady)
		if st := a.Status(); !st.Ready || len(st.Reasons) != 1 {
			t.Errorf("status %+v, want ready with one reason", st)
		}
		_, err = a.Next(t.Context(), "other")
		wantErr(t, err, leaf.ErrUnknownTag)
		orders.heal()
		if id := next(t, a, "order.1"); id != 100 {
			t.Errorf("order.1 = %d, want 100", id)
		}
	})
}

// TestAnotherRuleRefusesTheStart (rule K): also when only the names are swapped, and
// when a single database belongs to a division.
func TestAnotherRuleRefusesTheStart(t *testing.T) {
	x, y := newStore(), newStore()
	start := func(stores []segment.NamedStore, texts ...string) error {
		router, err := segment.NewRouter(stores, rules(t, texts...))
		if err != nil {
			t.Fatal(err)
		}
		a := newRouted(t, router, newDisk(), segment.Config{})
		defer closeNode(t, a)
		return a.Start(t.Context())
	}
	two := []segment.NamedStore{{Name: "x", Store: x}, {Name: "y", Store: y}}
	wantErr(t, start(two, "a*=x"), nil)
	wantErr(t, start(two, "a*=x"), nil)
	wantErr(t, start(two, "b*=x"), segment.ErrRule)
	wantErr(t, start(two), segment.ErrRule)
	wantErr(t, start([]segment.NamedStore{{Name: "x", Store: y}, {Name: "y", Store: x}}, "a*=x"), segment.ErrRule)
	wantErr(t, start([]segment.NamedStore{{Name: "default", Store: x}}), segment.ErrRule)
}

// TestNothingBeforeTheBinding: as long as nobody knows to which division of tags a
// database belongs, no statement of any kind reaches its rows.
func TestNothingBeforeTheBinding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		s.set(func(s *store) { s.onBind = func(context.Context, func() error) error { return errDown } })
		a := node(t, s, nil, segment.Config{MaxWait: time.Second})
		_, err := a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrNotReady)
		_, err = a.Repair(t.Context(), "order", 500)
		wantErr(t, err, leaf.ErrNotReady)
		wantErr(t, a.Refresh(t.Context(), "order"), leaf.ErrNotReady)
		if got := s.maxID(t, "order"); got != 1 {
			t.Errorf("max_id = %d, want it untouched", got)
		}
		s.heal()
		next(t, a, "order")
	})
}

const (
	routeGolden       = "212220"
	fingerprintGolden = "1b63c96450a1b10e9f8b5c8d195209bd"
)
