package respd_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/respd"
)

func guarded() (*gate, respd.Config) {
	g := &gate{token: "s3cret", issuers: leaf.Issuers{Segment: newIssuer(), Snowflake: newIssuer()}}
	return g, quiet(respd.Config{Access: g})
}

// TestNothingWithoutAuth: but AUTH, HELLO, RESET and QUIT.
func TestNothingWithoutAuth(t *testing.T) {
	t.Parallel()
	_, cfg := guarded()
	c := dial(t, start(t, cfg))
	for _, words := range [][]string{
		{"INCR", "a"},
		{"INCRBY", "a", "2"},
		{"LEAF.NEXT", "a"},
		{"LEAF.SNOWFLAKE"},
		{"LEAF.DECODE", "1"},
		{"PING"},
		{"ECHO", "a"},
		{"SELECT", "0"},
		{"CLIENT", "ID"},
		{"CLIENT", "SETNAME", "a"},
		{"INFO"},
		{"COMMAND"},
		{"SET", "a", "1"},
	} {
		c.ask("-NOAUTH Authentication required.\r\n", words...)
	}
	c.fails("NOAUTH HELLO must be called", "HELLO", "3")
	c.fails("NOAUTH HELLO must be called", "HELLO", "3", "SETNAME", "x")
	c.ask("+RESET\r\n", "RESET")
	c.fails("NOAUTH", "INCR", "a")
	c.ask("+OK\r\n", "QUIT")
	c.expectEnd()
}

func TestAuth(t *testing.T) {
	t.Parallel()
	const wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	_, cfg := guarded()
	s := start(t, cfg)
	c := dial(t, s)
	c.ask(wrong, "AUTH", "s3cre")
	c.ask(wrong, "AUTH", "default", "s3cret2")
	c.ask(wrong, "AUTH", "")
	c.ask(wrong, "HELLO", "3", "AUTH", "default", "x")
	c.fails("NOAUTH", "INCR", "a")
	c.fails("ERR syntax error", "AUTH", "a", "b", "c")
	c.fails("ERR wrong number", "AUTH")

	c.ask("+OK\r\n", "AUTH", "s3cret")
	c.ask(":1\r\n", "INCR", "a")
	c.ask(wrong, "AUTH", "wrong")
	c.ask(":2\r\n", "INCR", "a") // as in Redis, a failure takes nothing away
	c.ask(wrong, "AUTH", "")
	c.ask(wrong, "AUTH", "default", "")
	c.ask(wrong, "HELLO", "3", "AUTH", "default", "")

	c.ask("+RESET\r\n", "RESET")
	c.fails("NOAUTH", "INCR", "a")
	c.send(request("HELLO", "3", "AUTH", "billing", "s3cret", "SETNAME", "me"))
	c.reply()
	c.ask(":3\r\n", "INCR", "a")
}

// TestEmptyPassword: a client that has logged in and shows an empty password is asked
// about what it shows now, not about what it showed before.
func TestEmptyPassword(t *testing.T) {
	t.Parallel()
	g, cfg := guarded()
	c := dial(t, start(t, cfg))
	c.ask("+OK\r\n", "AUTH", "billing", "s3cret")
	for _, words := range [][]string{{"AUTH", ""}, {"AUTH", "shop", ""}, {"HELLO", "3", "AUTH", "shop", ""}} {
		c.ask("-WRONGPASS invalid username-password pair or user is disabled.\r\n", words...)
		if got := g.last(); got.Token != "" {
			t.Errorf("%q showed the token %q", words, got.Token)
		}
	}
}

// TestCredentials: what Access is shown.
func TestCredentials(t *testing.T) {
	t.Parallel()
	g, cfg := guarded()
	c := dial(t, start(t, cfg))
	for _, tt := range []struct {
		words []string
		want  leaf.Credentials
	}{
		{[]string{"AUTH", "s3cret"}, leaf.Credentials{Token: "s3cret"}},
		{[]string{"AUTH", "default", "s3cret"}, leaf.Credentials{Token: "s3cret"}},
		{[]string{"CLIENT", "SETNAME", "conn-1"}, leaf.Credentials{Token: "s3cret", Name: "conn-1"}},
		{[]string{"AUTH", "billing", "s3cret"}, leaf.Credentials{Token: "s3cret", Name: "billing"}},
		{[]string{"CLIENT", "SETNAME", "conn-2"}, leaf.Credentials{Token: "s3cret", Name: "billing"}}, // the user counts
		{[]string{"HELLO", "2", "AUTH", "default", "s3cret", "SETNAME", "conn-3"}, leaf.Credentials{Token: "s3cret", Name: "conn-3"}},
		{[]string{"HELLO", "2", "SETNAME", "conn-4", "AUTH", "shop", "s3cret"}, leaf.Credentials{Token: "s3cret", Name: "shop"}},
	} {
		c.send(request(tt.words...))
		if got := c.reply(); got[0] == '-' {
			t.Errorf("%q: %q", tt.words, got)
		}
		tt.want.Address = netip.MustParseAddr("127.0.0.1")
		if got := g.last(); got != tt.want {
			t.Errorf("%q: got %+v, want %+v", tt.words, got, tt.want)
		}
	}
}

// TestLoginIsNoRefusal: a connection that shows its token first thing, as every library does,
// is no request that was refused, and neither is a RESET. A command without a token is one.
func TestLoginIsNoRefusal(t *testing.T) {
	t.Parallel()
	g, cfg := guarded()
	c := dial(t, start(t, cfg))
	c.ask("+OK\r\n", "AUTH", "s3cret")
	c.ask(":1\r\n", "INCR", "a")
	c.ask("+RESET\r\n", "RESET")
	c.send(request("HELLO", "3", "AUTH", "default", "s3cret"))
	c.reply()
	c.ask(":2\r\n", "INCR", "a")
	nothing := leaf.Credentials{Address: netip.MustParseAddr("127.0.0.1")}
	login := nothing
	login.Token = "s3cret"
	if got := g.seen(); !slices.Equal(got, []leaf.Credentials{login, login}) {
		t.Errorf("what was shown: %+v", got)
	}
	c.ask("+RESET\r\n", "RESET")
	c.fails("NOAUTH", "INCR", "a")
	c.fails("NOAUTH", "HELLO", "2")
	if got := g.seen(); !slices.Equal(got, []leaf.Credentials{login, login, nothing, nothing}) {
		t.Errorf("what was shown: %+v", got)
	}
}

// TestAuthInOneBatch: a client may send AUTH and its first requests together; what
// stands before AUTH is refused.
func TestAuthInOneBatch(t *testing.T) {
	t.Parallel()
	_, cfg := guarded()
	c := dial(t, start(t, cfg))
	c.send(request("INCR", "a") + request("AUTH", "s3cret") + request("INCR", "a"))
	for _, want := range []string{"-NOAUTH Authentication required.\r\n", "+OK\r\n", ":1\r\n"} {
		if got := c.reply(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
