package respd

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// redisVersion is the release of Redis whose replies ours follow. Client libraries read
// it to learn which commands they may send while they connect.
const redisVersion = "7.0.15"

const (
	errWrongPass = refusal("WRONGPASS invalid username-password pair or user is disabled.")
	errHello     = refusal("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option " +
		"can be used to authenticate the client and select the RESP protocol version at the same time")
	errProto = refusal("NOPROTO unsupported protocol version")
	errReply = refusal("ERR leaf: CLIENT REPLY is refused: each command has one reply, and an ID in it")
	errDB    = refusal("ERR DB index is out of range: there is only 0")
)

// maxName bounds what a client may say of itself.
const maxName = 128

// session is what a connection remembers of its client.
type session struct {
	id          int64
	since       time.Time
	certificate string
	issuers     *leaf.Issuers // nil: the client must authenticate first
	token, user string        // of the last AUTH that was accepted
	name        string        // of CLIENT SETNAME
	lib, libVer string        // of CLIENT SETINFO
	inMulti     bool          // MULTI was refused, and neither EXEC nor DISCARD has come
}

var sessionCommands = []command{
	{
		name: "auth", arity: -2, flags: []string{"noscript", "loading", "stale", "fast", "no_auth", "allow_busy"}, group: "connection", since: "1.0.0",
		summary: "Shows a password.", open: true,
		params: []param{{name: "username", kind: "string", optional: true}, {name: "password", kind: "string"}}, run: auth,
	},
	{
		name: "hello", arity: -1, flags: []string{"noscript", "loading", "stale", "fast", "no_auth", "allow_busy"}, group: "connection", since: "6.0.0",
		summary: "Chooses the protocol, 2 or 3, and may authenticate and give a name.", open: true,
		params: []param{{name: "protover", kind: "integer", optional: true}}, run: hello,
	},
	{
		name: "client", arity: -2, flags: []string{"noscript", "loading", "stale"}, group: "connection", since: "2.4.0",
		summary: "What this server and this client tell each other: ID, INFO, LIST, GETNAME, SETNAME, SETINFO, NO-EVICT, NO-TOUCH.",
		params:  []param{{name: "subcommand", kind: "string"}}, run: client,
	},
	{
		name: "select", arity: 2, flags: []string{"loading", "stale", "fast"}, group: "connection", since: "1.0.0",
		summary: "Accepts database 0, the only one.",
		params:  []param{{name: "index", kind: "integer"}}, run: selectDB,
	},
	{
		name: "reset", arity: 1, flags: []string{"noscript", "loading", "stale", "fast", "no_auth", "allow_busy"}, group: "connection", since: "6.2.0",
		summary: "Makes the connection as it was at its start.", open: true, leaves: true, run: reset,
	},
	{
		name: "quit", arity: -1, flags: []string{"noscript", "loading", "stale", "fast", "no_auth", "allow_busy"}, group: "connection", since: "1.0.0",
		summary: "Ends the connection.", open: true, leaves: true, run: quit,
	},
	{
		name: "ping", arity: -1, flags: []string{"fast"}, group: "connection", since: "1.0.0",
		summary: "Answers PONG, or the message.",
		params:  []param{{name: "message", kind: "string", optional: true}}, run: ping,
	},
	{
		name: "echo", arity: 2, flags: []string{"loading", "stale", "fast"}, group: "connection", since: "1.0.0",
		summary: "Answers the message.",
		params:  []param{{name: "message", kind: "string"}}, run: echo,
	},
}

// begin starts the session of a client that has shown nothing but its certificate.
func (c *conn) begin(certificate string) {
	c.certificate = certificate
	c.loginBy = time.Now().Add(loginTime)
	if err := c.enter(); err != nil {
		c.srv.log.Error("the access rights of a new connection cannot be determined; it has none until it logs in", "error", err)
	}
}

// enter opens a session without a token, unless one is needed: the client is about to show it.
func (c *conn) enter() error {
	if c.srv.limits.Access.Guarded() {
		return nil
	}
	return c.open("", "", "")
}

// admitted reports whether the client may send a command that is not open to strangers. That
// of a stranger is a request that is refused.
func (c *conn) admitted() bool { return c.issuers != nil || c.open("", "", "") == nil }

// open asks for the issuers of this client, and keeps what it has if that fails.
func (c *conn) open(token, user, name string) error {
	called := user
	if called == "" {
		called = name
	}
	issuers, err := c.srv.limits.Access.Open(leaf.Credentials{Token: token, Certificate: c.certificate, Name: called, Address: accept.Address(c.raw)})
	if err != nil {
		return err
	}
	if c.issuers == nil {
		c.idleAt = 0 // it may be idle for longer now
	}
	c.issuers, c.token, c.user, c.name = issuers, token, user, name
	return nil
}

// login is AUTH, wherever it stands.
func (c *conn) login(user, password string) error {
	if strings.EqualFold(user, "default") {
		user = ""
	}
	err := c.open(password, user, c.name)
	if errors.Is(err, leaf.ErrUnauthenticated) {
		return errWrongPass
	}
	return err
}

func auth(c *conn, a args) error {
	var err error
	switch a.len() {
	case 2:
		err = c.login("", a.text(1))
	case 3:
		err = c.login(a.text(1), a.text(2))
	default:
		return errSyntax
	}
	if err != nil {
		return err
	}
	c.out.ok()
	return nil
}

func hello(c *conn, a args) error {
	resp3 := c.out.resp3
	if a.len() > 1 {
		switch a.text(1) {
		case "2":
			resp3 = false
		case "3":
			resp3 = true
		default:
			return errProto
		}
	}
	name := c.name
	for i := 2; i < a.len(); i++ {
		switch {
		case a.is(i, "AUTH") && i+2 < a.len():
			if err := c.login(a.text(i+1), a.text(i+2)); err != nil {
				return err
			}
			i += 2
		case a.is(i, "SETNAME") && i+1 < a.len():
			i++
			name = a.text(i)
			if err := checkName("client name", name); err != nil {
				return err
			}
		default:
			return refusal("ERR Syntax error in HELLO option '" + shorten(a.text(i), maxName) + "'")
		}
	}
	if !c.admitted() {
		return errHello
	}
	if err := c.rename(name); err != nil {
		return err
	}
	c.out.resp3 = resp3
	version := int64(2)
	if resp3 {
		version = 3
	}
	c.out.mapping(7)
	c.pair("server", "leaf")
	c.pair("version", redisVersion)
	c.field("proto", version)
	c.field("id", c.id)
	c.pair("mode", "standalone")
	c.pair("role", "master")
	c.out.bulk("modules")
	c.out.array(0)
	return nil
}

func (c *conn) pair(name, value string) {
	c.out.bulk(name)
	c.out.bulk(value)
}

// rename gives the connection a name, which may count for limits.
func (c *conn) rename(name string) error {
	if name == c.name {
		return nil
	}
	return c.open(c.token, c.user, name)
}

// checkName accepts what cannot be mistaken for something else in a list of clients.
func checkName(what, s string) error {
	if len(s) > maxName {
		return leaf.BadField(what, s, fmt.Sprintf("must have at most %d bytes", maxName))
	}
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return refusal("ERR " + what + " cannot contain spaces, newlines or special characters.")
		}
	}
	return nil
}

func client(c *conn, a args) error {
	switch {
	case a.is(1, "ID") && a.len() == 2:
		c.out.integer(c.id)
	case (a.is(1, "INFO") || a.is(1, "LIST")) && a.len() == 2:
		c.out.text(c.describe())
	case a.is(1, "GETNAME") && a.len() == 2:
		if c.name == "" {
			c.out.null()
			return nil
		}
		c.out.bulk(c.name)
	case a.is(1, "SETNAME") && a.len() == 3:
		if err := checkName("client name", a.text(2)); err != nil {
			return err
		}
		if err := c.rename(a.text(2)); err != nil {
			return err
		}
		c.out.ok()
	case a.is(1, "SETINFO") && a.len() == 4:
		return c.setInfo(a)
	case (a.is(1, "NO-EVICT") || a.is(1, "NO-TOUCH")) && a.len() == 3:
		c.out.ok() // nothing is ever evicted or touched
	case a.is(1, "REPLY"): // it may read no error, and take each later reply for that to another command
		c.ending = true
		return errReply
	default:
		return refusal(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%s'", shorten(a.text(1), maxName)))
	}
	return nil
}

func (c *conn) setInfo(a args) error {
	switch {
	case a.is(2, "LIB-NAME"):
		if err := checkName("lib-name", a.text(3)); err != nil {
			return err
		}
		c.lib = a.text(3)
	case a.is(2, "LIB-VER"):
		if err := checkName("lib-ver", a.text(3)); err != nil {
			return err
		}
		c.libVer = a.text(3)
	default:
		return refusal("ERR Unrecognized option '" + shorten(a.text(2), maxName) + "'")
	}
	c.out.ok()
	return nil
}

// describe is the line of CLIENT INFO. A client is not told of other connections.
func (c *conn) describe() string {
	version := 2
	if c.out.resp3 {
		version = 3
	}
	user := c.user
	if user == "" {
		user = "default"
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s name=%s age=%d idle=0 flags=N db=0 user=%s lib-name=%s lib-ver=%s resp=%d\n",
		c.id, c.raw.RemoteAddr(), c.raw.LocalAddr(), c.name, int(time.Since(c.since).Seconds()), strings.Map(inList, user), c.lib, c.libVer, version)
}

// inList replaces what would end a field of the line.
func inList(r rune) rune {
	if r <= ' ' || r > '~' {
		return '?'
	}
	return r
}

func selectDB(c *conn, a args) error {
	if a.text(1) != "0" {
		return errDB
	}
	c.out.ok()
	return nil
}

func reset(c *conn, _ args) error {
	if c.issuers != nil {
		c.loginBy, c.idleAt = time.Now().Add(loginTime), 0
	}
	c.issuers, c.lib, c.libVer, c.out.resp3 = nil, "", "", false
	c.token, c.user, c.name, c.inMulti = "", "", "", false
	if err := c.enter(); err != nil {
		return err
	}
	c.out.simple("RESET")
	return nil
}

func quit(c *conn, _ args) error {
	c.out.ok()
	c.ending = true
	return nil
}

func ping(c *conn, a args) error {
	switch a.len() {
	case 1:
		c.out.simple("PONG")
	case 2:
		c.out.bulk(a.text(1))
	default:
		return wrongArity("ping")
	}
	return nil
}

func echo(c *conn, a args) error {
	c.out.bulk(a.text(1))
	return nil
}
