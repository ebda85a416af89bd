package respd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// internalError is all that a client learns of a failure outside the table of classes.
const internalError = "ERR leaf: internal error, the server's log has the cause"

// args are the arguments of one request, its name first. They are valid until the
// request is answered.
type args struct {
	bytes []byte
	at    []span
}

func (a args) len() int { return len(a.at) }

func (a args) get(i int) []byte { return a.bytes[a.at[i].from:a.at[i].to] }

func (a args) text(i int) string { return string(a.get(i)) }

// is reports whether argument i is this word, in capitals, in any case.
func (a args) is(i int, word string) bool {
	return len(a.get(i)) == len(word) && strings.EqualFold(a.text(i), word)
}

// refusal is an error that is already what the client reads: the words of Redis, where
// its clients know them.
type refusal string

func (e refusal) Error() string { return string(e) }

const (
	errSyntax  = refusal("ERR syntax error")
	errNoAuth  = refusal("NOAUTH Authentication required.")
	errGrow    = refusal("ERR leaf: IDs only grow: a tag's number can be neither set, lowered nor deleted by a client")
	errInteger = refusal("ERR value is not an integer or out of range")
)

// command is a row of the table.
type command struct {
	name    string // in small letters
	arity   int    // arguments, the name included; negative: at least so many
	flags   []string
	tag     bool // the first argument is a tag, which Redis calls a key
	group   string
	since   string
	summary string
	params  []param
	hidden  bool // known in order to say why not
	open    bool // to clients that have not authenticated
	leaves  bool // carried out after a refused MULTI, too
	run     func(c *conn, a args) error
}

// param describes an argument for COMMAND DOCS.
type param struct {
	name, kind, token string
	optional          bool
}

// table holds the commands.
type table struct {
	byName map[string]*command
	listed []*command // in the order of their names
}

func newTable() *table {
	t := &table{byName: map[string]*command{}}
	for _, rows := range [][]command{idCommands, sequenceCommands, sessionCommands, aboutCommands, transactionCommands} {
		for i := range rows {
			cmd := &rows[i]
			t.byName[cmd.name] = cmd
			if !cmd.hidden {
				t.listed = append(t.listed, cmd)
			}
		}
	}
	slices.SortFunc(t.listed, func(a, b *command) int { return strings.Compare(a.name, b.name) })
	return t
}

// longestName is that of a command.
const longestName = 32

// find returns the command of this name, nil if there is none.
func (t *table) find(name []byte) *command {
	var room [longestName]byte
	if len(name) > len(room) {
		return nil
	}
	lower := room[:len(name)]
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return t.byName[string(lower)]
}

// lastCommand is the last command of a connection, as the client spelled it: most clients send
// the same one again and again, and to find it by its name takes longer than to issue an ID.
type lastCommand struct {
	spelled [longestName]byte
	n       int // bytes of spelled
	found   *command
}

// find returns the command of this name, nil if there is none.
func (l *lastCommand) find(t *table, name []byte) *command {
	if l.found != nil && string(name) == string(l.spelled[:l.n]) {
		return l.found
	}
	cmd := t.find(name)
	if cmd != nil {
		l.n, l.found = copy(l.spelled[:], name), cmd
	}
	return cmd
}

// execute answers one request.
func (c *conn) execute(a args) {
	c.commands++
	if err := c.dispatch(a); err != nil {
		c.fail(err)
	}
}

func (c *conn) dispatch(a args) error {
	cmd := c.last.find(c.srv.table, a.get(0))
	switch {
	case cmd == nil:
		return c.unknown(a)
	case c.inMulti && !cmd.leaves:
		return errMulti
	case cmd.arity > 0 && a.len() != cmd.arity, a.len() < -cmd.arity:
		return wrongArity(cmd.name)
	case !cmd.open && !c.admitted():
		return errNoAuth
	}
	return cmd.run(c, a)
}

// unknown answers a command that is not in the table. A browser that was tricked into
// sending its request here would have every line of it carried out, so what only HTTP
// says ends the connection, as in Redis.
func (c *conn) unknown(a args) error {
	if a.is(0, "POST") || a.is(0, "GET") && a.len() == 3 && strings.HasPrefix(a.text(2), "HTTP/") || a.is(0, "HOST:") {
		c.ending = true
		return refusal("ERR this is not HTTP")
	}
	const longest = 128
	begin := ""
	for i := 1; i < a.len() && len(begin) < longest; i++ {
		begin += fmt.Sprintf("'%s' ", shorten(a.text(i), longest-len(begin)))
	}
	return refusal(fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", shorten(a.text(0), longest), begin))
}

func shorten(s string, longest int) string { return s[:min(len(s), longest)] }

func wrongArity(name string) error {
	return refusal("ERR wrong number of arguments for '" + name + "' command")
}

// fail answers a request with an error.
func (c *conn) fail(err error) {
	c.failures++
	c.out.failure(c.srv.errorLine(err))
}

// errorLine returns the class of err and its text. The cause of an internal error
// goes to the log instead.
func (s *Server) errorLine(err error) string {
	if e, ok := errors.AsType[refusal](err); ok {
		return string(e)
	}
	err = accept.Ended(err)
	class := leaf.ClassOf(err)
	if class.Err == nil {
		s.log.Error("internal error", "error", err)
		return internalError
	}
	return class.RESP + " " + err.Error()
}

func itoa(n int) string { return strconv.Itoa(n) }
