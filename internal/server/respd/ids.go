package respd

import (
	"fmt"
	"strconv"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/server/format"
)

// defaultKey is the key of LEAF.SNOWFLAKE without one. IDs of snowflake mode do not
// depend on the key; limits may.
const defaultKey = "snowflake"

// attempts is how often INCRBY asks for consecutive IDs. The second one fails only if
// ranges of that tag are hardly longer than what is asked for.
const attempts = 2

var idCommands = []command{
	{
		name: "incr", arity: 2, flags: []string{"write", "denyoom", "fast"}, tag: true, group: "string", since: "1.0.0",
		summary: "The next ID of a tag.",
		params:  []param{{name: "tag", kind: "key"}}, run: incr,
	},
	{
		name: "incrby", arity: 3, flags: []string{"write", "denyoom", "fast"}, tag: true, group: "string", since: "1.0.0",
		summary: "The last of n consecutive IDs of a tag.",
		params:  []param{{name: "tag", kind: "key"}, {name: "n", kind: "integer"}}, run: incrBy,
	},
	{
		name: "leaf.next", arity: -2, flags: []string{"write", "denyoom", "fast"}, tag: true, group: "leaf", since: "1.0.0",
		summary: "The next ID of a tag, or an array of the next n, which may have gaps.",
		params:  append([]param{{name: "tag", kind: "key"}}, idOptions...), run: next,
	},
	{
		name: "leaf.snowflake", arity: -1, flags: []string{"write", "denyoom", "fast"}, group: "leaf", since: "1.0.0",
		summary: "One ID of snowflake mode, or an array of n.",
		params:  append([]param{{name: "key", kind: "string", optional: true}}, idOptions...), run: snowflake,
	},
	{
		name: "leaf.decode", arity: -2, flags: []string{"readonly", "fast"}, group: "leaf", since: "1.0.0",
		summary: "The fields of an ID of snowflake mode.",
		params:  []param{{name: "id", kind: "integer"}, {name: "layout", kind: "string", token: "LAYOUT", optional: true}}, run: decode,
	},
	{name: "decr", arity: -1, hidden: true, run: onlyGrow},
	{name: "decrby", arity: -1, hidden: true, run: onlyGrow},
	{name: "del", arity: -1, hidden: true, run: onlyGrow},
	{name: "getset", arity: -1, hidden: true, run: onlyGrow},
	{name: "incrbyfloat", arity: -1, hidden: true, run: onlyGrow},
	{name: "set", arity: -1, hidden: true, run: onlyGrow},
	{name: "unlink", arity: -1, hidden: true, run: onlyGrow},
}

var idOptions = []param{
	{name: "count", kind: "integer", token: "COUNT", optional: true},
	{name: "text", kind: "pure-token", token: "TEXT", optional: true},
	{name: "format", kind: "string", token: "FORMAT", optional: true},
}

func onlyGrow(*conn, args) error { return errGrow }

func incr(c *conn, a args) error {
	tag, err := c.memory.tag(a.get(1))
	if err != nil {
		return err
	}
	id, err := c.issuers.Segment.Next(c.ctx, tag)
	if err != nil {
		return err
	}
	c.out.integer(id)
	return nil
}

// incrBy returns the last of n consecutive IDs: a client counts back from it, as it
// does with Redis, so numbers of other nodes must not lie between.
func incrBy(c *conn, a args) error {
	tag, err := c.memory.tag(a.get(1))
	if err != nil {
		return err
	}
	n, err := count("increment", a.text(2))
	if err != nil {
		return err
	}
	for range attempts {
		ranges, err := c.issuers.Segment.NextN(c.ctx, tag, n)
		if err != nil {
			return err
		}
		if len(ranges) == 1 && ranges[0].Len() == int64(n) {
			c.out.integer(ranges[0].Hi - 1)
			return nil
		}
	}
	return refusal(fmt.Sprintf("ERR leaf: increment=%d: the next IDs of this tag are not consecutive, %d times in a row, "+
		"because its ranges end between them; these %d IDs are lost; ask for fewer, use LEAF.NEXT, or raise the tag's step", n, attempts, attempts*n))
}

func next(c *conn, a args) error {
	tag, err := c.memory.tag(a.get(1))
	if err != nil {
		return err
	}
	o, err := parseOptions(a, 2)
	if err != nil {
		return err
	}
	f, err := c.srv.limits.Formats.Segment(tag, o.format)
	if err != nil {
		return err
	}
	return c.issue(c.issuers.Segment, tag, f, o)
}

func snowflake(c *conn, a args) error {
	key, rest := defaultKey, 1
	if a.len() > 1 && !a.is(1, "COUNT") && !a.is(1, "TEXT") && !a.is(1, "FORMAT") {
		var err error
		if key, err = c.memory.tag(a.get(1)); err != nil {
			return err
		}
		rest = 2
	}
	o, err := parseOptions(a, rest)
	if err != nil {
		return err
	}
	f, err := c.srv.limits.Formats.Snowflake(o.format)
	if err != nil {
		return err
	}
	return c.issue(c.issuers.Snowflake, key, f, o)
}

// options are what may follow the tag.
type options struct {
	n      int
	array  bool // COUNT was given
	text   bool
	format string // "": none was given
}

func parseOptions(a args, from int) (o options, err error) {
	o.n = 1
	for i := from; i < a.len(); i++ {
		switch {
		case a.is(i, "TEXT") && !o.text:
			o.text = true
		case a.is(i, "COUNT") && !o.array && i+1 < a.len():
			i++
			o.array = true
			if o.n, err = count("count", a.text(i)); err != nil {
				return o, err
			}
		case a.is(i, "FORMAT") && o.format == "" && i+1 < a.len():
			i++
			if o.format = a.text(i); o.format == "" {
				return o, leaf.BadField("format", o.format, "must be one word")
			}
		default:
			return o, errSyntax
		}
	}
	return o, nil
}

// count reads a number of IDs.
func count(field, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > leaf.MaxBatch {
		return 0, leaf.BadField(field, text, fmt.Sprintf("must be a count from 1 to %d", leaf.MaxBatch))
	}
	return n, nil
}

// issue answers with one ID, or with an array of them in pieces: a full batch has
// 2 MB, and thousands of clients may ask for one at the same time. f writes what is not a number.
func (c *conn) issue(issuer leaf.Issuer, tag string, f *format.Format, o options) error {
	write := c.out.integer
	if o.text || f != nil {
		write = func(id int64) { c.out.id(f, id) }
	}
	if !o.array {
		id, err := issuer.Next(c.ctx, tag)
		if err == nil {
			err = f.Check(leaf.Range{Lo: id, Hi: id + 1})
		}
		if err != nil {
			return err
		}
		write(id)
		return nil
	}
	ranges, err := issuer.NextN(c.ctx, tag, o.n)
	if err == nil {
		err = f.Check(ranges...)
	}
	if err != nil {
		return err
	}
	c.out.array(o.n)
	for _, r := range ranges {
		for id := r.Lo; id < r.Hi; id++ {
			write(id)
			if !c.spill() {
				return nil // the client is gone, its IDs are lost
			}
		}
	}
	return nil
}

func decode(c *conn, a args) error {
	id, err := idtime.ParseID("id", a.text(1))
	if err != nil {
		return err
	}
	layout := c.srv.limits.Times
	switch {
	case a.len() == 4 && a.is(2, "LAYOUT"):
		if layout, err = layout.Of(a.text(3)); err != nil {
			return err
		}
	case a.len() != 2:
		return errSyntax
	}
	d, err := layout.Decode(id)
	if err != nil {
		return err
	}
	fields := 3
	if d.Datacenter != nil {
		fields++
	}
	c.out.mapping(fields)
	c.field("timestamp", d.UnixMilli)
	c.field("workerId", d.Worker)
	c.field("sequenceId", d.Sequence)
	if d.Datacenter != nil {
		c.field("datacenterId", *d.Datacenter)
	}
	return nil
}

func (c *conn) field(name string, value int64) {
	c.out.bulk(name)
	c.out.integer(value)
}
