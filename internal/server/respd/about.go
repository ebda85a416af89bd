package respd

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

var aboutCommands = []command{
	{
		name: "info", arity: -1, flags: []string{"loading", "stale"}, group: "server", since: "1.0.0",
		summary: "What this server is and has done, in sections.",
		params:  []param{{name: "section", kind: "string", optional: true}}, run: info,
	},
	{
		name: "command", arity: -1, flags: []string{"loading", "stale"}, group: "server", since: "2.8.13",
		summary: "The commands of this server: all, or COUNT, LIST, INFO or DOCS.",
		params:  []param{{name: "subcommand", kind: "string", optional: true}}, run: commands,
	},
}

// sections are those of INFO, in order.
var sections = []struct {
	name  string
	write func(s *Server, b *strings.Builder)
}{
	{"server", func(s *Server, b *strings.Builder) {
		uptime := time.Since(s.since)
		addr := s.Addr().String()
		port := addr[strings.LastIndexByte(addr, ':')+1:]
		lines(b, "redis_version", redisVersion, "leaf_version", s.limits.Version, "redis_mode", "standalone",
			"os", runtime.GOOS+" "+runtime.GOARCH, "arch_bits", 64, "go_version", runtime.Version(),
			"process_id", os.Getpid(), "tcp_port", port,
			"uptime_in_seconds", int(uptime.Seconds()), "uptime_in_days", int(uptime.Hours())/24)
	}},
	{"clients", func(s *Server, b *strings.Builder) {
		lines(b, "connected_clients", s.ln.Open(), "maxclients", s.limits.MaxConns)
	}},
	{"stats", func(s *Server, b *strings.Builder) {
		lines(b, "total_connections_received", s.accepted.Load(), "rejected_connections", s.ln.Refused(),
			"total_commands_processed", s.commands.Load(), "total_error_replies", s.failures.Load())
	}},
	// Some clients, valkey-glide among them, connect only to a server that says its role.
	{"replication", func(_ *Server, b *strings.Builder) {
		lines(b, "role", "master", "connected_slaves", 0)
	}},
}

// lines writes pairs of a name and a value.
func lines(b *strings.Builder, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(b, "%s:%v\r\n", pairs[i], pairs[i+1])
	}
}

func info(c *conn, a args) error {
	c.count()
	wanted := func(name string) bool {
		if a.len() == 1 {
			return true
		}
		for i := 1; i < a.len(); i++ {
			if a.is(i, strings.ToUpper(name)) || a.is(i, "ALL") || a.is(i, "DEFAULT") || a.is(i, "EVERYTHING") {
				return true
			}
		}
		return false
	}
	var b strings.Builder
	for _, s := range sections {
		if !wanted(s.name) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("# " + strings.ToUpper(s.name[:1]) + s.name[1:] + "\r\n")
		s.write(c.srv, &b)
	}
	c.out.text(b.String())
	return nil
}

func commands(c *conn, a args) error {
	t := c.srv.table
	switch {
	case a.len() == 1:
		c.out.array(len(t.listed))
		for _, cmd := range t.listed {
			c.out.command(cmd)
		}
	case a.is(1, "COUNT") && a.len() == 2:
		c.out.integer(int64(len(t.listed)))
	case a.is(1, "LIST") && a.len() == 2:
		c.out.array(len(t.listed))
		for _, cmd := range t.listed {
			c.out.bulk(cmd.name)
		}
	case a.is(1, "INFO"):
		found := t.named(a, 2)
		c.out.array(len(found))
		for _, cmd := range found {
			if cmd == nil {
				c.out.null()
				continue
			}
			c.out.command(cmd)
			if !c.spill() {
				return nil
			}
		}
	case a.is(1, "DOCS"):
		found := t.named(a, 2)
		known := 0
		for _, cmd := range found {
			if cmd != nil {
				known++
			}
		}
		c.out.mapping(known)
		for _, cmd := range found {
			if cmd != nil {
				c.out.docs(cmd)
			}
			if !c.spill() {
				return nil
			}
		}
	default:
		return refusal(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%s'", shorten(a.text(1), maxName)))
	}
	return nil
}

// named returns the commands that a names from its argument from on, nil in the place
// of one that does not exist; without names all of them.
func (t *table) named(a args, from int) []*command {
	if a.len() <= from {
		return t.listed
	}
	found := make([]*command, 0, a.len()-from)
	for i := from; i < a.len(); i++ {
		cmd := t.find(a.get(i))
		if cmd != nil && cmd.hidden {
			cmd = nil
		}
		found = append(found, cmd)
	}
	return found
}

// command appends a row of COMMAND, with the ten members of Redis 7.
func (r *reply) command(cmd *command) {
	r.array(10)
	r.bulk(cmd.name)
	r.integer(int64(cmd.arity))
	r.set(len(cmd.flags))
	for _, f := range cmd.flags {
		r.simple(f)
	}
	key := int64(0)
	if cmd.tag {
		key = 1
	}
	r.integer(key) // first key
	r.integer(key) // last key
	r.integer(key) // step
	r.set(0)       // categories of access control lists
	r.array(0)     // tips
	r.array(0)     // key specifications
	r.array(0)     // subcommands
}

// docs appends a pair of COMMAND DOCS.
func (r *reply) docs(cmd *command) {
	r.bulk(cmd.name)
	members := 3
	if len(cmd.params) > 0 {
		members++
	}
	r.mapping(members)
	for _, member := range [][2]string{{"summary", cmd.summary}, {"since", cmd.since}, {"group", cmd.group}} {
		r.bulk(member[0])
		r.bulk(member[1])
	}
	if len(cmd.params) == 0 {
		return
	}
	r.bulk("arguments")
	r.array(len(cmd.params))
	for _, p := range cmd.params {
		r.param(p)
	}
}

func (r *reply) param(p param) {
	members := [][2]string{{"name", p.name}, {"type", p.kind}, {"display_text", p.name}}
	if p.token != "" {
		members = append(members, [2]string{"token", p.token})
	}
	n := len(members)
	if p.optional {
		n++
	}
	r.mapping(n)
	for _, m := range members {
		r.bulk(m[0])
		r.bulk(m[1])
	}
	if p.optional {
		r.bulk("flags")
		r.set(1)
		r.simple("optional")
	}
}
