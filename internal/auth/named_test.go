package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/auth"
)

// roles reads roles that are right.
func roles(t *testing.T, words ...string) auth.Roles {
	t.Helper()
	r, err := auth.ParseRoles(words)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRoles: what each role may do, and nothing else.
func TestRoles(t *testing.T) {
	t.Parallel()
	for words, may := range map[string]string{
		"issue":                   "order orders user snowflake",
		"issue:order":             "order",
		"issue:order*":            "order orders",
		"issue:*":                 "order orders user",
		"issue:user snowflake":    "user snowflake",
		"snowflake":               "snowflake",
		"read":                    "read",
		"admin":                   "read admin",
		"issue:order issue:user":  "order user",
		"issue read admin":        "order orders user snowflake read admin",
		"issue:Order issue:ord r": "", // wrong
	} {
		r, err := auth.ParseRoles(strings.Fields(words))
		if (err != nil) != (may == "") {
			t.Errorf("%q: %v", words, err)
		}
		if err != nil {
			continue
		}
		n := auth.NewNamed()
		secret, digest := auth.NewSecret()
		n.Set([]auth.Token{{Name: "a", Digest: digest, Roles: r}}, time.Now())
		g, err := auth.NewTokens().WithNamed(n, nil).Identify(leaf.Credentials{Token: secret, Certificate: ""})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for name, ask := range map[string]func() error{
			"snowflake": g.IssueSnowflake, "read": g.Read, "admin": g.Admin,
			"order": func() error { return g.Issue("order") }, "orders": func() error { return g.Issue("orders") }, "user": func() error { return g.Issue("user") },
		} {
			err := ask()
			if err == nil {
				got = append(got, name)
			} else if !errors.Is(err, leaf.ErrForbidden) || !strings.Contains(err.Error(), "token a has not the role ") || strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %s: %v", words, name, err)
			}
		}
		want := strings.Fields(may)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q may %v, want %v", words, got, want)
		}
	}
}

// FuzzParseRoles: roles that are understood are written as they are read.
func FuzzParseRoles(f *testing.F) {
	f.Add("issue:order* issue:a read")
	f.Add("issue snowflake admin")
	f.Add("issue:a*b")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := auth.ParseRoles(strings.Fields(text))
		if err != nil {
			return
		}
		again, err := auth.ParseRoles(r.Words())
		if err != nil || !slices.Equal(again.Words(), r.Words()) {
			t.Errorf("%q became %q, %v", text, r.Words(), err)
		}
	})
}

// TestNamed: named tokens beside those of the configuration, and what a change of the set does
// to grants that are in use.
func TestNamed(t *testing.T) {
	t.Parallel()
	n := auth.NewNamed()
	tokens := auth.NewTokens("fixed").WithNamed(n, map[string]auth.Roles{"shop.example": roles(t, "issue:order")})
	secret, digest := auth.NewSecret()
	if _, err := tokens.Identify(leaf.Credentials{Token: secret, Certificate: ""}); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("before the first reading: %v; want ErrNotReady", err)
	}
	if g, err := tokens.Identify(leaf.Credentials{Token: "fixed", Certificate: "shop.example"}); err != nil || !g.Free() {
		t.Errorf("a token of the configuration: %+v, %v", g, err)
	}
	if g, err := tokens.Identify(leaf.Credentials{Token: "", Certificate: "shop.example"}); err != nil || g.Free() || g.Issue("order") != nil || !errors.Is(g.Issue("user"), leaf.ErrForbidden) {
		t.Errorf("a certificate with roles: %v", err)
	}
	for _, other := range []string{"", "other.example"} {
		if _, err := tokens.Identify(leaf.Credentials{Token: "", Certificate: other}); !errors.Is(err, leaf.ErrUnauthenticated) {
			t.Errorf("certificate %q: %v", other, err)
		}
	}
	shop := auth.Token{Name: "shop", Digest: digest, Roles: roles(t, "issue")}
	bad := auth.Token{Name: "bad", Digest: "x", Roles: roles(t, "admin")}
	n.Set([]auth.Token{shop, bad}, time.Now())
	before, err := tokens.Identify(leaf.Credentials{Token: secret, Certificate: "shop.example"}) // the token goes before the certificate
	if err != nil || before.Name != "shop" {
		t.Fatalf("%+v, %v", before, err)
	}
	for _, wrong := range []string{"", "x", digest, secret[:len(secret)-1], secret + "x", strings.ToUpper(secret)} {
		if g, err := tokens.Identify(leaf.Credentials{Token: wrong, Certificate: ""}); !errors.Is(err, leaf.ErrUnauthenticated) {
			t.Errorf("%q: %+v, %v", wrong, g, err)
		}
	}
	n.Set([]auth.Token{shop}, time.Now()) // the same again
	if same, err := tokens.Identify(leaf.Credentials{Token: secret, Certificate: ""}); err != nil || same != before || before.Issue("order") != nil {
		t.Errorf("the same token became another one: %v", err)
	}
	shop.Roles = roles(t, "read")
	n.Set([]auth.Token{shop}, time.Now())
	if issue, read := before.Issue("order"), before.Read(); !errors.Is(issue, leaf.ErrForbidden) || read != nil {
		t.Errorf("a grant whose roles have changed: issue %v, read %v", issue, read)
	}
	now, err := tokens.Identify(leaf.Credentials{Token: secret, Certificate: ""})
	if err != nil || now.Read() != nil || now.Issue("order") == nil {
		t.Errorf("the changed token: %v", err)
	}
	n.Set(nil, time.Now())
	if err := now.Read(); !errors.Is(err, leaf.ErrUnauthenticated) {
		t.Errorf("a revoked grant: %v", err)
	}
	if _, err := tokens.Identify(leaf.Credentials{Token: secret, Certificate: ""}); !errors.Is(err, leaf.ErrUnauthenticated) {
		t.Errorf("a revoked token: %v", err)
	}
	if !tokens.Required() {
		t.Error("without any named token, none is asked for")
	}
}

// TestTokenComesBack: a token that is missing in one reading, because its file is being written or its table
// restored, counts again on connections that are open.
func TestTokenComesBack(t *testing.T) {
	t.Parallel()
	n := auth.NewNamed()
	secret, digest := auth.NewSecret()
	shop := auth.Token{Name: "shop", Digest: digest, Roles: roles(t, "issue")}
	n.Set([]auth.Token{shop}, time.Now())
	g, err := auth.NewTokens().WithNamed(n, nil).Identify(leaf.Credentials{Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	n.Set(nil, time.Now())
	n.Set(nil, time.Now()) // it is not forgotten with the next reading
	if err := g.Issue("order"); !errors.Is(err, leaf.ErrUnauthenticated) {
		t.Errorf("while it is missing: %v", err)
	}
	if _, err := auth.NewTokens().WithNamed(n, nil).Identify(leaf.Credentials{Token: secret}); !errors.Is(err, leaf.ErrUnauthenticated) {
		t.Errorf("while it is missing, another connection: %v", err)
	}
	shop.Roles = roles(t, "issue:order")
	n.Set([]auth.Token{shop}, time.Now())
	if order, user := g.Issue("order"), g.Issue("user"); order != nil || !errors.Is(user, leaf.ErrForbidden) {
		t.Errorf("once it is back, with other roles: %v, %v", order, user)
	}
	other := shop
	_, other.Digest = auth.NewSecret()
	n.Set([]auth.Token{other}, time.Now())
	if err := g.Issue("order"); !errors.Is(err, leaf.ErrUnauthenticated) {
		t.Errorf("its name has another secret: %v", err)
	}
}

// failing is a Store that can be cut off.
type failing struct {
	auth.Store

	cut  atomic.Bool
	once atomic.Pointer[func()] // is called by the next reading; nil: nothing is
}

func (f *failing) NamedTokens(ctx context.Context) ([]auth.Token, error) {
	if once := f.once.Swap(nil); once != nil {
		(*once)()
	}
	if f.cut.Load() {
		return nil, errors.New("connection refused")
	}
	return f.Store.NamedTokens(ctx)
}

// TestReadingThatDoesNotReturn: a token that is revoked while a reading hangs, whatever its context says, or panics, is refused.
func TestReadingThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(end <-chan struct{}){
		"hangs":  func(end <-chan struct{}) { <-end },
		"panics": func(<-chan struct{}) { panic("planted") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &failing{Store: memory.New()}
				secret, digest := auth.NewSecret()
				if err := store.CreateToken(t.Context(), auth.Token{Name: "a", Digest: digest, Roles: roles(t, "issue"), Created: time.Now()}); err != nil {
					t.Fatal(err)
				}
				n, end := auth.NewNamed(), make(chan struct{})
				defer close(end)
				var log strings.Builder
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go n.Follow(ctx, auth.FollowConfig{
					Store: store, Interval: 2 * time.Second, Timeout: time.Second, Runtime: leaf.SystemRuntime(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
				})
				synctest.Wait()
				kept, err := auth.NewTokens().WithNamed(n, nil).Identify(leaf.Credentials{Token: secret})
				if err != nil {
					t.Fatal(err)
				}
				store.once.Store(new(func() { fault(end) }))
				if err := store.RevokeToken(ctx, "a"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if err := kept.Issue("order"); !errors.Is(err, leaf.ErrUnauthenticated) {
					t.Errorf("a token that was revoked: %v", err)
				}
				if strings.Count(log.String(), "named tokens cannot be read") != 1 {
					t.Errorf("the log says %s", &log)
				}
			})
		})
	}
}

// TestFollow: a token that is made or revoked counts within an interval. While the store does
// not answer, the last set stays, and the log says since when.
func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := &failing{Store: memory.New()}
		store.cut.Store(true)
		n := auth.NewNamed()
		tokens := auth.NewTokens().WithNamed(n, nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go n.Follow(ctx, auth.FollowConfig{
			Store: store, Interval: 2 * time.Second, Timeout: time.Second, Runtime: leaf.SystemRuntime(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		secret, digest := auth.NewSecret()
		expect := func(after time.Duration, want error) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if _, err := tokens.Identify(leaf.Credentials{Token: secret, Certificate: ""}); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		expect(time.Second, leaf.ErrNotReady)
		store.cut.Store(false)
		expect(250*time.Millisecond, leaf.ErrUnauthenticated)
		if err := store.CreateToken(ctx, auth.Token{Name: "a", Digest: digest, Roles: roles(t, "issue"), Created: time.Now()}); err != nil {
			t.Fatal(err)
		}
		expect(2*time.Second, nil)
		store.cut.Store(true)
		expect(time.Minute, nil)
		store.cut.Store(false)
		if err := store.RevokeToken(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		expect(2*time.Second, leaf.ErrUnauthenticated)
		stop()
		synctest.Wait()
		for _, text := range []string{"named tokens cannot be read yet", "the last ones stay in force\" read=20", "named tokens can be read again"} {
			if strings.Count(log.String(), text) != 1+strings.Count(text, "again") {
				t.Errorf("%q is not in the log as often as it should be:\n%s", text, &log)
			}
		}
	})
}
