package auth_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
)

// TestGuard: ten wrong tokens at once, then one per second. Until then the address hears
// nothing else, also with a token that can be guessed; one that nobody can guess goes through,
// and so does every other address.
func TestGuard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		guard, named := auth.NewGuard(time.Now), auth.NewNamed()
		long := strings.Repeat("x", 32)
		tokens := auth.NewTokens("short", long).WithNamed(named, nil).WithGuard(guard)
		secret, digest := auth.NewSecret()
		named.Set([]auth.Token{{Name: "shop", Digest: digest, Roles: roles(t, "issue")}}, time.Now())
		show := func(token, from string, want error) {
			t.Helper()
			if _, err := tokens.Identify(leaf.Credentials{Token: token, Address: netip.MustParseAddr(from)}); !errors.Is(err, want) {
				t.Errorf("%q from %s: %v, want %v", token, from, err, want)
			}
		}
		const here = "2001:db8::1"
		for range 10 {
			show("wrong", here, leaf.ErrUnauthenticated)
		}
		if guard.Status().Active {
			t.Error("there is an alarm before anything was refused unheard")
		}
		show("wrong", here, leaf.ErrThrottled)
		show("wrong", "2001:db8::2", leaf.ErrThrottled) // the same network
		show("short", here, leaf.ErrThrottled)
		show(long, here, nil)
		show(secret, here, nil)
		show("", here, leaf.ErrUnauthenticated) // no attempt
		show("short", "2001:db8:0:1::1", nil)
		show("wrong", "192.0.2.1", leaf.ErrUnauthenticated)
		show("wrong", "::ffff:192.0.2.1", leaf.ErrUnauthenticated)
		if st := guard.Status(); !st.Active || st.Refused != 3 || st.Last.String() != "2001:db8::/64" {
			t.Errorf("%+v", st)
		}
		time.Sleep(time.Second)
		show("wrong", here, leaf.ErrUnauthenticated)
		show("short", here, leaf.ErrThrottled)
		time.Sleep(time.Second)
		show("short", here, nil) // which costs nothing
		show("short", here, nil)
		time.Sleep(auth.Calm)
		if guard.Status().Active {
			t.Error("the alarm lasts")
		}
	})
}

// TestGuardIsBounded: more addresses than there is room for share one place.
func TestGuardIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := auth.NewTokens("short").WithGuard(auth.NewGuard(time.Now))
		refused, at := 0, netip.MustParseAddr("10.0.0.0")
		for range 5000 {
			at = at.Next()
			if _, err := tokens.Identify(leaf.Credentials{Token: "wrong", Address: at}); errors.Is(err, leaf.ErrThrottled) {
				refused++
			}
		}
		if refused != 5000-4096-10 {
			t.Errorf("%d were refused unheard", refused)
		}
		time.Sleep(time.Minute)
		if _, err := tokens.Identify(leaf.Credentials{Token: "wrong", Address: at}); !errors.Is(err, leaf.ErrUnauthenticated) {
			t.Errorf("later there is room again: %v", err)
		}
	})
}
