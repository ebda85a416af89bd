package limit_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/limit"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]limit.Config{
		"target wait": {TargetWait: -1},
		"max waiting": {MaxWaiting: -1},
	} {
		_, err := limit.New(leaf.Issuers{Segment: new(engine), Snowflake: new(engine)}, c)
		if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), name) {
			t.Errorf("New(%+v): %v; want ErrBadRequest that names %s", c, err, name)
		}
	}
	if _, err := limit.New(leaf.Issuers{Segment: new(engine)}, limit.Config{}); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("New without an issuer: %v; want ErrBadRequest", err)
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	g := newGate(t, limit.Config{Tokens: auth.NewTokens("secret")}, new(engine), new(engine))
	for _, c := range []struct {
		shown leaf.Credentials
		ok    bool
	}{
		{leaf.Credentials{}, false},
		{leaf.Credentials{Token: "Secret"}, false},
		{leaf.Credentials{Token: "secret "}, false},
		{leaf.Credentials{Token: "secre"}, false},
		{leaf.Credentials{Certificate: "secret", Name: "secret"}, false},
		{leaf.Credentials{Token: "secret"}, true},
		{leaf.Credentials{Token: "secret", Certificate: "a", Name: "b"}, true},
	} {
		issuers, err := g.Open(c.shown)
		switch {
		case c.ok && (err != nil || issuers == nil || issuers.Segment == nil || issuers.Snowflake == nil):
			t.Errorf("Open(%+v) = %v, %v", c.shown, issuers, err)
		case !c.ok && (!errors.Is(err, leaf.ErrUnauthenticated) || issuers != nil):
			t.Errorf("Open(%+v) = %v, %v; want ErrUnauthenticated", c.shown, issuers, err)
		case !c.ok && strings.Contains(err.Error(), "ecret"):
			t.Errorf("the error shows a token: %v", err)
		}
	}
	if got := g.Status().Unauthenticated; got != 5 {
		t.Errorf("Status().Unauthenticated = %d, want 5", got)
	}
	if _, err := newGate(t, limit.Config{}, new(engine), new(engine)).Open(leaf.Credentials{Token: "any"}); err != nil {
		t.Errorf("Open without a configured token: %v", err)
	}
}

// TestNames: a client whose name no limit can be set for would pass the kill switch for
// the name that it resembles.
func TestNames(t *testing.T) {
	t.Parallel()
	g := newGate(t, limit.Config{}, new(engine), new(engine))
	for name, ok := range map[string]bool{
		"": true, "shop": true, "der Laden": true, strings.Repeat("说", 128): true,
		" shop": false, "shop ": false, "sh\nop": false, "\x00": false, "\xff": false, strings.Repeat("x", 129): false,
	} {
		issuers, err := g.Open(leaf.Credentials{Name: name})
		if ok && err != nil || !ok && (!errors.Is(err, leaf.ErrBadRequest) || issuers != nil) {
			t.Errorf("Open for %q: %v, %v; want it accepted: %v", name, issuers, err, ok)
		}
		if _, err := g.Open(leaf.Credentials{Name: name, Certificate: "shop"}); err != nil {
			t.Errorf("Open for %q with a certificate, which counts: %v", name, err)
		}
	}
}

// TestScope says which requests a rule limits.
func TestScope(t *testing.T) {
	t.Parallel()
	type request struct {
		who  leaf.Credentials
		mode string
		tag  string
	}
	off := limit.Rule{Blocked: true}
	for _, c := range []struct {
		name    string
		rules   limit.Rules
		request request
		blocked bool
	}{
		{"tag", tags("a", off), request{tag: "a"}, true},
		{"another tag", tags("a", off), request{tag: "b"}, false},
		{"tag in another case", tags("a", off), request{tag: "A"}, false},
		{"a key of snowflake mode is no tag", tags("a", off), request{tag: "a", mode: "snowflake"}, false},
		{"client by name", clients("x", off), request{who: leaf.Credentials{Name: "x"}, tag: "a"}, true},
		{"client by name, snowflake mode", clients("x", off), request{who: leaf.Credentials{Name: "x"}, mode: "snowflake"}, true},
		{"client by certificate", clients("x", off), request{who: leaf.Credentials{Certificate: "x"}, tag: "a"}, true},
		{"a certificate counts, not the name", clients("x", off), request{who: leaf.Credentials{Certificate: "y", Name: "x"}, tag: "a"}, false},
		{"another client", clients("x", off), request{who: leaf.Credentials{Name: "y"}, tag: "a"}, false},
		{"no name", clients("x", off), request{tag: "a"}, false},
		{"all without a name", clients("", off), request{tag: "a"}, true},
		{"a name is not none", clients("", off), request{who: leaf.Credentials{Name: "y"}, tag: "a"}, false},
		{"a client is no tag", clients("a", off), request{tag: "a"}, false},
		{"a tag is no client", tags("x", off), request{who: leaf.Credentials{Name: "x"}, tag: "a"}, false},
		{"the zero rule", tags("a", limit.Rule{}), request{tag: "a"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := new(engine)
			g := newGate(t, limit.Config{}, e, e)
			g.Set(c.rules)
			issuers := open(t, g, c.request.who)
			i := issuers.Segment
			if c.request.mode == "snowflake" {
				i = issuers.Snowflake
			}
			_, one := i.Next(t.Context(), c.request.tag)
			_, many := i.NextN(t.Context(), c.request.tag, 7)
			for _, err := range []error{one, many} {
				if c.blocked && !errors.Is(err, leaf.ErrBlocked) || !c.blocked && err != nil {
					t.Errorf("error %v; want blocked %v", err, c.blocked)
				}
			}
			if want := map[bool]int{true: 0, false: 8}[c.blocked]; e.ids != want {
				t.Errorf("%d IDs were taken, want %d", e.ids, want)
			}
			if want := map[bool]int64{true: 2}[c.blocked]; g.Status().Blocked != want {
				t.Errorf("Status().Blocked = %d, want %d", g.Status().Blocked, want)
			}
		})
	}
}

// TestRulesCountAtOnce, also for issuers that a server keeps for a connection.
func TestRulesCountAtOnce(t *testing.T) {
	t.Parallel()
	g := newGate(t, limit.Config{}, new(engine), new(engine))
	named, nobody := open(t, g, leaf.Credentials{Name: "x"}), open(t, g, leaf.Credentials{})
	try := func(i *leaf.Issuers) bool { _, err := i.Segment.Next(t.Context(), "a"); return err == nil }
	for _, c := range []struct {
		rules         limit.Rules
		named, nobody bool
	}{
		{limit.Rules{}, true, true},
		{clients("x", limit.Rule{Blocked: true}), false, true},
		{clients("", limit.Rule{Blocked: true}), true, false},
		{tags("a", limit.Rule{Blocked: true}), false, false},
		{limit.Rules{}, true, true},
	} {
		g.Set(c.rules)
		if got := try(named); got != c.named {
			t.Errorf("%+v: the client with a name is let through: %v", c.rules, got)
		}
		if got := try(nobody); got != c.nobody {
			t.Errorf("%+v: the client without one is let through: %v", c.rules, got)
		}
	}
}

// TestOrder: what is switched off is said before what is used up, and the client's limit
// before the tag's; a refusal takes nothing from the others.
func TestOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		e := new(engine)
		g := newGate(t, limit.Config{}, e, e)
		i := open(t, g, leaf.Credentials{Name: "x"}).Segment
		rules := limit.Rules{
			Clients: map[string]limit.Rule{"x": {Rate: 5, Quota: 100}},
			Tags:    map[string]limit.Rule{"a": {Rate: 3, Quota: 100}, "b": {Quota: 4}},
		}
		g.Set(rules)
		expect := func(tag string, n int, want error, text string) {
			t.Helper()
			_, err := i.NextN(t.Context(), tag, n)
			if !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("NextN(%q, %d): %v; want %v with %q", tag, n, err, want, text)
			}
		}
		expect("a", 3, nil, "")
		expect("a", 1, leaf.ErrThrottled, `tag "a" is 3 IDs per second`)
		expect("b", 5, leaf.ErrThrottled, `client "x" is 5 IDs per second`)
		expect("b", 2, nil, "") // the client's 5 are used up now: the refusals took nothing
		expect("b", 1, leaf.ErrThrottled, `client "x" is 5 IDs per second`)
		time.Sleep(time.Second)
		expect("b", 3, leaf.ErrThrottled, `tag "b" is 4 IDs per day`)
		expect("b", 2, nil, "")
		expect("a", 3, nil, "")
		rules.Tags["a"] = limit.Rule{Rate: 3, Blocked: true}
		g.Set(rules)
		expect("a", 1, leaf.ErrBlocked, `tag "a"`)
		want := []limit.RuleStatus{
			{Name: "a", Rule: rules.Tags["a"], Refused: 2},
			{Name: "b", Rule: rules.Tags["b"], Used: 4, Refused: 1},
			{Client: true, Name: "x", Rule: rules.Clients["x"], Used: 10, Refused: 2},
		}
		if diff := gocmp.Diff(want, g.Rules()); diff != "" {
			t.Errorf("Rules (-want +got):\n%s", diff)
		}
		if s := g.Status(); s.Rate != 3 || s.Quota != 1 || s.Blocked != 1 {
			t.Errorf("Status = %+v; want 3 by rate, 1 by quota, 1 blocked", s)
		}
		if e.ids != 10 {
			t.Errorf("%d IDs were taken, want 10", e.ids)
		}
	})
}

// TestFailuresDoNotCount: limits count IDs that were issued.
func TestFailuresDoNotCount(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		e := &engine{err: leaf.ErrNotReady}
		g := newGate(t, limit.Config{}, e, e)
		g.Set(limit.Rules{
			Tags:    map[string]limit.Rule{"a": {Rate: 10, Quota: 10}},
			Clients: map[string]limit.Rule{"": {Rate: 10, Quota: 10}},
		})
		i := open(t, g, leaf.Credentials{}).Segment
		for range 100 {
			_, one := i.Next(t.Context(), "a")
			_, ten := i.NextN(t.Context(), "a", 10)
			if !errors.Is(one, leaf.ErrNotReady) || !errors.Is(ten, leaf.ErrNotReady) {
				t.Fatal(one, ten)
			}
		}
		e.err = nil
		if _, err := i.NextN(t.Context(), "a", 10); err != nil {
			t.Errorf("after failures: %v", err)
		}
		if _, err := i.Next(t.Context(), "a"); !errors.Is(err, leaf.ErrThrottled) {
			t.Errorf("the 11th ID: %v; want ErrThrottled", err)
		}
	})
}

// TestBadCount: the engine says what is wrong with a count, and no limit does arithmetic
// with it.
func TestBadCount(t *testing.T) {
	t.Parallel()
	g := newGate(t, limit.Config{}, new(engine), new(engine))
	g.Set(tags("a", limit.Rule{Rate: 5, Quota: 5}))
	i := open(t, g, leaf.Credentials{}).Segment
	for _, n := range []int{0, -1, math.MinInt, leaf.MaxBatch + 1, math.MaxInt} {
		if _, err := i.NextN(t.Context(), "a", n); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "is wrong") {
			t.Errorf("NextN(%d): %v", n, err)
		}
	}
	if _, err := i.NextN(t.Context(), "a", 5); err != nil {
		t.Errorf("after bad counts: %v", err)
	}
}
