package httpd_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// keeper is an Access that notes what it is shown and refuses what refuse says.
type keeper struct {
	inner  leaf.Access
	refuse func(c leaf.Credentials) error // nil: nobody

	mu    sync.Mutex
	shown []leaf.Credentials
}

func newKeeper() *keeper { return &keeper{inner: leaf.Anyone(newIssuer(), newIssuer())} }

func (k *keeper) Guarded() bool { return k.refuse != nil }

func (k *keeper) Open(c leaf.Credentials) (*leaf.Issuers, error) {
	if c.Address.IsLoopback() { // as every connection of a test; another one is no row of a table
		c.Address = netip.Addr{}
	} else {
		c.Name += " from nowhere"
	}
	k.mu.Lock()
	k.shown = append(k.shown, c)
	k.mu.Unlock()
	if k.refuse != nil {
		if err := k.refuse(c); err != nil {
			return nil, err
		}
	}
	return k.inner.Open(c)
}

// seen returns what was shown since the last time.
func (k *keeper) seen() []leaf.Credentials {
	k.mu.Lock()
	defer k.mu.Unlock()
	shown := k.shown
	k.shown = nil
	return shown
}

// wants refuses every token but one.
func wants(token string) func(leaf.Credentials) error {
	return func(c leaf.Credentials) error {
		if c.Token != token {
			return fmt.Errorf("%w: show the token in the field Authorization", leaf.ErrUnauthenticated)
		}
		return nil
	}
}

// with adds header fields to a request.
func with(request string, fields ...string) string {
	return strings.Replace(request, "\r\n\r\n", "\r\n"+strings.Join(fields, "\r\n")+"\r\n\r\n", 1)
}

// TestCredentials: what arrives at Access, on both paths.
func TestCredentials(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		fields []string
		want   leaf.Credentials
		status int  // if it is not 200
		fast   bool // the fast path understands it
	}{
		{"nothing", []string{"Via: x"}, leaf.Credentials{}, 0, true},
		{"token", []string{"Authorization: Bearer s3cret"}, leaf.Credentials{Token: "s3cret"}, 0, true},
		{"token with signs", []string{"Authorization: Bearer a-._~+/=:;,\"'%"}, leaf.Credentials{Token: `a-._~+/=:;,"'%`}, 0, true},
		{"name", []string{"Leaf-Client: billing"}, leaf.Credentials{Name: "billing"}, 0, true},
		{"both", []string{"leaf-client: billing", "authorization: Bearer s3cret"}, leaf.Credentials{Token: "s3cret", Name: "billing"}, 0, true},
		{"scheme in lower case", []string{"Authorization: bearer s3cret"}, leaf.Credentials{Token: "s3cret"}, 0, false},
		{"more spaces", []string{"Authorization:   Bearer   s3cret  "}, leaf.Credentials{Token: "s3cret"}, 0, false},
		{"a token with a space", []string{"Authorization: Bearer open sesame"}, leaf.Credentials{Token: "open sesame"}, 0, false},
		{"another scheme", []string{"Authorization: Basic dTpw"}, leaf.Credentials{}, 0, false},
		{"no token", []string{"Authorization: Bearer"}, leaf.Credentials{}, 0, false},
		{"a name with a space", []string{"Leaf-Client: order service"}, leaf.Credentials{Name: "order service"}, 0, false},
		{"a name of other characters", []string{"Leaf-Client: 订单"}, leaf.Credentials{Name: "订单"}, 0, false},
		{"a name of 128 characters", []string{"Leaf-Client: " + strings.Repeat("é", 128)}, leaf.Credentials{Name: strings.Repeat("é", 128)}, 0, false},
		{"a name of 129 characters", []string{"Leaf-Client: " + strings.Repeat("n", 129)}, leaf.Credentials{}, 400, false},
		{"a name that is not UTF-8", []string{"Leaf-Client: \xff"}, leaf.Credentials{}, 400, false},
		{"two tokens", []string{"Authorization: Bearer a", "Authorization: Bearer a"}, leaf.Credentials{}, 400, false},
		{"two names", []string{"Leaf-Client: a", "Leaf-Client: a"}, leaf.Credentials{}, 400, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, _, ok := httpd.Understood([]byte(with(fastGET("order"), tt.fields...))); ok != tt.fast {
				t.Errorf("understood by the fast path: %v, want %v", ok, tt.fast)
			}
			for _, path := range paths {
				k := newKeeper()
				c := dial(t, start(t, quiet(httpd.Config{Access: k})))
				c.send(with(path.get("order"), tt.fields...))
				r := c.reply()
				want := []leaf.Credentials{tt.want}
				status := http.StatusOK
				if tt.status != 0 {
					want, status = nil, tt.status
				}
				if diff := cmp.Diff(want, k.seen(), cmpopts.EquateComparable(netip.Addr{})); diff != "" || r.status != status {
					t.Errorf("%s: %v; shown (-want +got):\n%s", path.name, r, diff)
				}
			}
		})
	}
}

// TestAccessIsAskedOncePerConnection: and again when the client shows something else, or
// was refused.
func TestAccessIsAskedOncePerConnection(t *testing.T) {
	t.Parallel()
	k := newKeeper()
	k.refuse = func(c leaf.Credentials) error {
		if c.Token == "wrong" {
			return leaf.ErrUnauthenticated
		}
		return nil
	}
	s := start(t, quiet(httpd.Config{Access: k}))
	c := dial(t, s)
	plain, one, two, wrong := leaf.Credentials{}, leaf.Credentials{Token: "1"}, leaf.Credentials{Token: "1", Name: "n"}, leaf.Credentials{Token: "wrong"}
	for i, step := range []struct {
		fields []string
		status int
		want   []leaf.Credentials
	}{
		{nil, 200, []leaf.Credentials{plain}},
		{nil, 200, nil},
		{[]string{"Authorization: Bearer 1"}, 200, []leaf.Credentials{one}},
		{[]string{"Authorization: Bearer 1"}, 200, nil},
		{[]string{"Authorization: Bearer 1", "Leaf-Client: n"}, 200, []leaf.Credentials{two}},
		{[]string{"Leaf-Client: n", "Authorization: Bearer 1"}, 200, nil},
		{[]string{"Authorization: Bearer 1"}, 200, []leaf.Credentials{one}}, // the name is gone
		{[]string{"Leaf-Client: n"}, 200, []leaf.Credentials{{Name: "n"}}},  // the token is gone
		{[]string{"Authorization: Bearer wrong"}, 401, []leaf.Credentials{wrong}},
		{[]string{"Authorization: Bearer wrong"}, 401, []leaf.Credentials{wrong}},
		{nil, 200, []leaf.Credentials{plain}},
		{nil, 200, nil},
	} {
		request := fastGET("order")
		if step.fields != nil {
			request = with(request, step.fields...)
		}
		c.send(request)
		if r := c.reply(); r.status != step.status {
			t.Errorf("step %d: %v, want %d", i, r, step.status)
		}
		if got := k.seen(); !slices.Equal(got, step.want) {
			t.Errorf("step %d: shown %+v, want %+v", i, got, step.want)
		}
	}
}

// TestUnauthenticated: no route gives anything away but those that are for everybody,
// and those do not ask.
func TestUnauthenticated(t *testing.T) {
	t.Parallel()
	k := newKeeper()
	k.refuse = wants("s3cret")
	cfg := wireConfig()
	cfg.Access = k
	cfg.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "leaf_build_info 1") })
	cfg.Times = servertest.Times(func(int64) (idtime.Decoded, error) { return idtime.Decoded{}, nil })
	s := start(t, cfg)
	for _, rt := range httpd.Routes(cfg) {
		target := strings.NewReplacer("{tag}", "order", "{key}", "order").Replace(rt.Path)
		t.Run(rt.Path, func(t *testing.T) {
			request := rt.Methods[0] + " " + target + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
			if strings.HasPrefix(target, "/api/") {
				request = "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"
			}
			for _, fields := range [][]string{nil, {"Authorization: Bearer wrong"}, {"X-Slow: 1"}, {"X-Slow: 1", "Authorization: Basic s3cret"}} {
				k.seen()
				c := dial(t, s)
				if fields != nil {
					c.send(with(request, fields...))
				} else {
					c.send(request)
				}
				r := c.reply()
				asked := len(k.seen())
				switch {
				case rt.Public && (r.status == 401 || asked > 0):
					t.Errorf("%q: %v, Access was asked %d times; want 0", fields, r, asked)
				case !rt.Public && (r.status != 401 || asked != 1 || r.header.Get("WWW-Authenticate") != "Bearer" || !strings.Contains(r.body, `"code":"unauthenticated"`)):
					t.Errorf("%q: %v %v, Access was asked %d times; want a 401 and 1", fields, r, r.header, asked)
				}
			}
			c := dial(t, s)
			c.send(with(request, "Authorization: Bearer s3cret"))
			if r := c.reply(); r.status == 401 {
				t.Errorf("with the token: %v", r)
			}
		})
	}
}

// TestBrokenAccess: a panic or an error without a class is an internal error, and the
// connection lives on.
func TestBrokenAccess(t *testing.T) {
	t.Parallel()
	for _, path := range paths {
		k := newKeeper()
		k.refuse = func(c leaf.Credentials) error {
			switch c.Token {
			case "panic":
				panic("secret-12345")
			case "fail":
				return errors.New("secret-12345")
			}
			return nil
		}
		c := dial(t, start(t, quiet(httpd.Config{Access: k})))
		for _, token := range []string{"panic", "fail"} {
			c.send(with(path.get("order"), "Authorization: Bearer "+token))
			if r := c.reply(); r.status != 500 || strings.Contains(r.body, "12345") {
				t.Errorf("%s: %s: %v", path.name, token, r)
			}
		}
		c.ask(path.get("order"), "1")
	}
}
