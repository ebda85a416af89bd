package respd

import (
	"github.com/leaf-idgen/leaf"
)

var sequenceCommands = []command{
	{
		name: "hincrby", arity: 4, flags: []string{"write", "denyoom", "fast"}, tag: true, group: "hash", since: "2.0.0",
		summary: "The last of the next n numbers of an entity of a sequence.",
		params:  []param{{name: "sequence", kind: "key"}, {name: "entity", kind: "string"}, {name: "n", kind: "integer"}}, run: hincrBy,
	},
	{name: "hdel", arity: -1, hidden: true, run: onlyGrow},
	{name: "hincrbyfloat", arity: -1, hidden: true, run: onlyGrow},
	{name: "hmset", arity: -1, hidden: true, run: onlyGrow},
	{name: "hset", arity: -1, hidden: true, run: onlyGrow},
	{name: "hsetnx", arity: -1, hidden: true, run: onlyGrow},
}

// hincrBy returns the last of n consecutive numbers, as incrBy does.
func hincrBy(c *conn, a args) error {
	name, err := c.memory.tag(a.get(1))
	if err != nil {
		return err
	}
	n, err := count("increment", a.text(3))
	if err != nil {
		return err
	}
	results, err := c.issuers.Sequencer().NextEach(c.ctx, name, []leaf.SequenceRequest{{Entity: a.text(2), Count: n}})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return err
	}
	c.out.integer(results[0].Range.Hi - 1)
	return nil
}
