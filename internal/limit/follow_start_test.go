package limit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/limit"
)

var (
	errDown = errors.New("connection refused")
	blocked = limit.Rule{Blocked: true}
)

// starting is a gate whose follower has just begun.
type starting struct {
	t                  *testing.T
	gate               *limit.Gate
	follower           *limit.Follower
	access             leaf.Access
	segment, snowflake *engine
}

func begin(t *testing.T, c limit.FollowConfig, sources ...limit.Source) *starting {
	t.Helper()
	s := &starting{t: t, segment: new(engine), snowflake: new(engine)}
	s.gate = newGate(t, limit.Config{}, s.segment, s.snowflake)
	s.follower = limit.NewFollower(s.gate, sources, c)
	s.access = s.follower.Access()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.follower.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	synctest.Wait()
	return s
}

func (s *starting) open(c leaf.Credentials) *leaf.Issuers {
	s.t.Helper()
	issuers, err := s.access.Open(c)
	if err != nil {
		s.t.Fatal(err)
	}
	return issuers
}

// expect asks for one ID and for two, by i, and checks how it ends and after what time.
func (s *starting) expect(what string, i leaf.Issuer, tag string, want error, least, most time.Duration) {
	s.t.Helper()
	for _, ask := range []func() error{
		func() error { _, err := i.Next(s.t.Context(), tag); return err },
		func() error { _, err := i.NextN(s.t.Context(), tag, 2); return err },
	} {
		began := time.Now()
		err := ask()
		if took := time.Since(began); took < least || took > most {
			s.t.Errorf("%s: %v after %v, want %v to %v", what, err, took, least, most)
		}
		if !errors.Is(err, want) {
			s.t.Errorf("%s: %v, want %v", what, err, want)
		}
		least = 0 // the second one finds what the first one has waited for
	}
}

// TestNothingIsIssuedBeforeTheRules of its source are known, and what waits goes on as
// soon as they are.
func TestNothingIsIssuedBeforeTheRules(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		a := newSource("off", "on")
		must(t, second(a.SetTagLimit(t.Context(), "off", limit.ChangeTo(blocked))))
		must(t, second(a.SetClientLimit(t.Context(), "x", limit.ChangeTo(blocked))))
		a.breakDown(errDown)
		s := begin(t, limit.FollowConfig{}, limit.Source{Name: "a", Store: a})
		if segment, snowflake := s.follower.Held(); !segment || !snowflake {
			t.Errorf("Held = %t, %t before the first reading", segment, snowflake)
		}
		all := s.open(leaf.Credentials{})
		time.AfterFunc(500*time.Millisecond, func() { a.breakDown(nil) })
		s.expect("a tag that is switched off", all.Segment, "off", leaf.ErrBlocked, 500*time.Millisecond, 750*time.Millisecond)
		if s.segment.ids != 0 {
			t.Errorf("%d IDs of a tag that is switched off", s.segment.ids)
		}
		s.expect("another tag", all.Segment, "on", nil, 0, 0)
		s.expect("snowflake mode", all.Snowflake, "", nil, 0, 0)
		if segment, snowflake := s.follower.Held(); segment || snowflake {
			t.Errorf("Held = %t, %t after the first reading", segment, snowflake)
		}
		if got, want := s.open(leaf.Credentials{}), open(t, s.gate, leaf.Credentials{}); got != want {
			t.Error("after the first reading something still stands before the gate")
		}
	})
}

// TestServersHearOfHeldRequests: a server writes the replies to other requests before one waits for the rules.
func TestServersHearOfHeldRequests(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		a := newSource("on")
		a.breakDown(errDown)
		all := begin(t, limit.FollowConfig{}, limit.Source{Name: "a", Store: a}).open(leaf.Credentials{})
		heard := 0
		ctx := context.WithValue(t.Context(), leaf.WaitKey{}, func() { heard++ })
		if _, err := all.Segment.Next(ctx, "on"); heard != 1 || !errors.Is(err, leaf.ErrNotReady) {
			t.Errorf("heard of %d waits, want 1: %v", heard, err)
		}
		a.breakDown(nil)
		time.Sleep(time.Minute)
		if _, err := all.Segment.Next(ctx, "on"); heard != 1 || err != nil {
			t.Errorf("heard of %d waits, want no second one: %v", heard, err)
		}
	})
}

// TestADatabaseThatStaysDown: its tags wait for it, however long; the mode that does not
// need it serves after Timeout.
func TestADatabaseThatStaysDown(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{errDown, errHang} {
		bubble(t, func(t *testing.T) {
			a := newSource("off")
			must(t, second(a.SetTagLimit(t.Context(), "off", limit.ChangeTo(blocked))))
			must(t, second(a.SetClientLimit(t.Context(), "x", limit.ChangeTo(blocked))))
			a.breakDown(fault)
			s := begin(t, limit.FollowConfig{Timeout: 3 * time.Second, MaxWait: time.Second}, limit.Source{Name: "a", Store: a, Issues: func() bool { return false }})
			all, x := s.open(leaf.Credentials{}), s.open(leaf.Credentials{Name: "x"})
			s.expect("snowflake mode at first", x.Snowflake, "", leaf.ErrNotReady, time.Second, time.Second)
			time.Sleep(time.Second)
			synctest.Wait()
			if segment, snowflake := s.follower.Held(); !segment || snowflake {
				t.Errorf("Held = %t, %t after the timeout", segment, snowflake)
			}
			s.expect("snowflake mode after the timeout", all.Snowflake, "", nil, 0, 0)
			time.Sleep(time.Hour)
			s.expect("a tag after an hour", all.Segment, "off", leaf.ErrNotReady, time.Second, time.Second)
			time.AfterFunc(100*time.Millisecond, func() { a.breakDown(nil) })
			if errors.Is(fault, errDown) {
				s.expect("the tag as the database comes back", all.Segment, "off", leaf.ErrBlocked, 100*time.Millisecond, 350*time.Millisecond)
			}
			time.Sleep(5 * time.Second)
			s.expect("the tag later", all.Segment, "off", leaf.ErrBlocked, 0, 0)
			s.expect("a client that is switched off", x.Snowflake, "", leaf.ErrBlocked, 0, 0)
			if s.segment.ids != 0 {
				t.Errorf("%d IDs of a tag that is switched off", s.segment.ids)
			}
		})
	}
}

// TestRulesThatCannotBeRead, for lack of a right for example, end no service.
func TestRulesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		a := newSource("on")
		a.breakDown(errDown)
		began, issues := time.Now(), time.Minute
		s := begin(t, limit.FollowConfig{}, limit.Source{Name: "a", Store: a, Issues: func() bool { return time.Since(began) >= issues }})
		all := s.open(leaf.Credentials{})
		time.Sleep(issues)
		s.expect("as the database begins to issue", all.Segment, "on", leaf.ErrNotReady, time.Second, time.Second)
		time.Sleep(time.Second)
		s.expect("after the timeout", all.Segment, "on", nil, 0, 0)
	})
}

// TestOneOfTwoDatabasesIsDown: the tags of the other one are served.
func TestOneOfTwoDatabasesIsDown(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		down, up    string
		least, most time.Duration // that a tag of the other one waits
	}{
		{"first", "second", time.Second, 2 * time.Second},
		{"second", "first", 0, 0},
	} {
		t.Run(tc.down, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				stores := map[string]*source{"first": newSource("first"), "second": newSource("second")}
				stores[tc.down].breakDown(errHang)
				held := func(store string) func(string) bool { return func(tag string) bool { return tag == store } }
				s := begin(t, limit.FollowConfig{MaxWait: 3 * time.Second},
					limit.Source{Name: "first", Store: stores["first"], Holds: held("first")},
					limit.Source{Name: "second", Store: stores["second"], Holds: held("second")})
				all := s.open(leaf.Credentials{})
				s.expect("the tag of the one that is up", all.Segment, tc.up, nil, tc.least, tc.most)
				s.expect("a tag that no database holds", all.Segment, "third", nil, 0, 0)
				s.expect("the tag of the one that is down", all.Segment, tc.down, leaf.ErrNotReady, 3*time.Second, 3*time.Second)
				if segment, snowflake := s.follower.Held(); segment || snowflake {
					t.Errorf("Held = %t, %t although a database answers", segment, snowflake)
				}
				stores[tc.down].breakDown(nil)
				s.expect("the tag of the one that came back", all.Segment, tc.down, nil, 0, 2*time.Second+250*time.Millisecond)
			})
		})
	}
}

// TestWhatIsNotHeld: what can only fail, at once.
func TestWhatIsNotHeld(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		a := newSource()
		a.breakDown(errHang)
		s := begin(t, limit.FollowConfig{MaxWaiting: 2}, limit.Source{Name: "a", Store: a})
		began := time.Now()
		all := s.open(leaf.Credentials{})
		if _, err := all.Segment.NextN(t.Context(), "tag", 0); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("a batch of none: %v", err)
		}
		var waiting sync.WaitGroup
		for range 2 {
			waiting.Go(func() { _, _ = all.Segment.Next(t.Context(), "tag") })
		}
		synctest.Wait()
		if _, err := all.Snowflake.Next(t.Context(), ""); !errors.Is(err, leaf.ErrNotReady) || leaf.RetryAfter(err) == 0 {
			t.Errorf("one more than may wait: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		off := limit.NewFollower(newGate(t, limit.Config{Tokens: auth.NewTokens("secret")}, leaf.Disabled("segment"), leaf.Disabled("snowflake")), []limit.Source{{Store: a}}, limit.FollowConfig{})
		off.Run(gone)
		if _, err := off.Access().Open(leaf.Credentials{Token: "wrong"}); !errors.Is(err, leaf.ErrUnauthenticated) {
			t.Errorf("a wrong token: %v", err)
		}
		modes, err := off.Access().Open(leaf.Credentials{Token: "secret"})
		must(t, err)
		for _, i := range []leaf.Issuer{modes.Segment, modes.Snowflake} {
			if _, err := i.Next(t.Context(), "tag"); !errors.Is(err, leaf.ErrDisabled) {
				t.Errorf("a mode that is off: %v", err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		waiting.Wait()
	})
}
