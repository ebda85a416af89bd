package respd_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/server/respd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// TestReplies is what goes over the wire, in both protocols; got3 is empty where it is
// the same in RESP3. The steps of a row follow each other on one connection.
func TestReplies(t *testing.T) {
	t.Parallel()
	type step struct{ ask, got, got3 string }
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"INCR", []step{{"INCR order", ":1\r\n", ""}, {"incr order", ":2\r\n", ""}, {"InCr other", ":1\r\n", ""}}},
		{"INCRBY", []step{
			{"INCRBY order 1", ":1\r\n", ""},
			{"INCRBY order 10", ":11\r\n", ""},
			{"INCRBY order 100000", ":100011\r\n", ""},
			{"INCR order", ":100012\r\n", ""},
		}},
		{"a name after one that begins like it, and the other way round", []step{
			{"INCR order", ":1\r\n", ""},
			{"INCRBY order 5", ":6\r\n", ""},
			{"incr order", ":7\r\n", ""},
			{"INC order", "-ERR unknown command 'INC', with args beginning with: 'order' \r\n", ""},
			{"iNCR order", ":8\r\n", ""},
			{"iNCRBY order 2", ":10\r\n", ""},
		}},
		{"INCRBY over a gap", []step{{"INCRBY 'gap once' 4", ":1008\r\n", ""}, {"INCR 'gap once'", ":1009\r\n", ""}}},
		{"INCRBY over gaps only", []step{
			{"INCRBY gap 4", "-ERR leaf: increment=4: the next IDs of this tag are not consecutive, 2 times in a row, because its ranges end between them; " +
				"these 8 IDs are lost; ask for fewer, use LEAF.NEXT, or raise the tag's step\r\n", ""},
			{"INCR gap", ":2009\r\n", ""},
		}},
		{"INCRBY of nothing", []step{
			{"INCRBY order 0", "-ERR leaf: bad request: increment=\"0\": must be a count from 1 to 100000\r\n", ""},
			{"INCRBY order -1", "-ERR leaf: bad request: increment=\"-1\": must be a count from 1 to 100000\r\n", ""},
			{"INCRBY order 100001", "-ERR leaf: bad request: increment=\"100001\": must be a count from 1 to 100000\r\n", ""},
			{"INCRBY order 99999999999999999999", "-ERR leaf: bad request: increment=\"99999999999999999999\": must be a count from 1 to 100000\r\n", ""},
			{"INCRBY order x", "-ERR leaf: bad request: increment=\"x\": must be a count from 1 to 100000\r\n", ""},
			{"INCR order", ":1\r\n", ""},
		}},
		{"LEAF.NEXT", []step{
			{"LEAF.NEXT order", ":1\r\n", ""},
			{"LEAF.NEXT order COUNT 3", "*3\r\n:2\r\n:3\r\n:4\r\n", ""},
			{"LEAF.NEXT order count 1", "*1\r\n:5\r\n", ""},
			{"LEAF.NEXT order TEXT", "$1\r\n6\r\n", ""},
			{"LEAF.NEXT order TEXT COUNT 2", "*2\r\n$1\r\n7\r\n$1\r\n8\r\n", ""},
			{"LEAF.NEXT order COUNT 2 TEXT", "*2\r\n$1\r\n9\r\n$2\r\n10\r\n", ""},
			{"LEAF.NEXT COUNT", ":1\r\n", ""},
			{"LEAF.NEXT COUNT COUNT 1", "*1\r\n:2\r\n", ""},
			{"LEAF.NEXT gap COUNT 2", "*2\r\n:1\r\n:1002\r\n", ""},
			{"LEAF.NEXT order FORMAT number", ":11\r\n", ""},
			{"LEAF.NEXT order format number TEXT COUNT 1", "*1\r\n$2\r\n12\r\n", ""},
		}},
		{"LEAF.NEXT with nonsense", []step{
			{"LEAF.NEXT order COUNT", "-ERR syntax error\r\n", ""},
			{"LEAF.NEXT order COUNT 1 COUNT 1", "-ERR syntax error\r\n", ""},
			{"LEAF.NEXT order TEXT TEXT", "-ERR syntax error\r\n", ""},
			{"LEAF.NEXT order FORMAT", "-ERR syntax error\r\n", ""},
			{"LEAF.NEXT order FORMAT number FORMAT number", "-ERR syntax error\r\n", ""},
			{"LEAF.NEXT order FORMAT base62", "-ERR leaf: bad request: format=\"base62\": must be number, text, opaque, opaque-base62 or opaque-crockford\r\n", ""},
			{"LEAF.NEXT order FORMAT \"\"", "-ERR leaf: bad request: format=\"\": must be one word\r\n", ""},
			{"LEAF.NEXT order 5", "-ERR syntax error\r\n", ""},
			{"LEAF.NEXT order COUNT 0", "-ERR leaf: bad request: count=\"0\": must be a count from 1 to 100000\r\n", ""},
			{"LEAF.NEXT order COUNT 100001", "-ERR leaf: bad request: count=\"100001\": must be a count from 1 to 100000\r\n", ""},
			{"LEAF.NEXT", "-ERR wrong number of arguments for 'leaf.next' command\r\n", ""},
			{"LEAF.NEXT order", ":1\r\n", ""},
		}},
		{"LEAF.SNOWFLAKE", []step{
			{"LEAF.SNOWFLAKE", ":1\r\n", ""},
			{"LEAF.SNOWFLAKE snowflake", ":2\r\n", ""},
			{"LEAF.SNOWFLAKE COUNT 2", "*2\r\n:3\r\n:4\r\n", ""},
			{"LEAF.SNOWFLAKE TEXT", "$1\r\n5\r\n", ""},
			{"LEAF.SNOWFLAKE key", ":1\r\n", ""},
			{"LEAF.SNOWFLAKE key COUNT 2 TEXT", "*2\r\n$1\r\n2\r\n$1\r\n3\r\n", ""},
			{"LEAF.SNOWFLAKE COUNT", "-ERR syntax error\r\n", ""},
			{"LEAF.SNOWFLAKE FORMAT number", ":6\r\n", ""},
		}},
		{"LEAF.DECODE", []step{
			{"LEAF.DECODE 7", "*6\r\n$9\r\ntimestamp\r\n:1000\r\n$8\r\nworkerId\r\n:2\r\n$10\r\nsequenceId\r\n:7\r\n", "%3\r\n$9\r\ntimestamp\r\n:1000\r\n$8\r\nworkerId\r\n:2\r\n$10\r\nsequenceId\r\n:7\r\n"},
			{
				"LEAF.DECODE 8", "*8\r\n$9\r\ntimestamp\r\n:1000\r\n$8\r\nworkerId\r\n:2\r\n$10\r\nsequenceId\r\n:8\r\n$12\r\ndatacenterId\r\n:3\r\n",
				"%4\r\n$9\r\ntimestamp\r\n:1000\r\n$8\r\nworkerId\r\n:2\r\n$10\r\nsequenceId\r\n:8\r\n$12\r\ndatacenterId\r\n:3\r\n",
			},
			{
				"LEAF.DECODE 7 LAYOUT other", "*6\r\n$9\r\ntimestamp\r\n:1000\r\n$8\r\nworkerId\r\n:9\r\n$10\r\nsequenceId\r\n:7\r\n",
				"%3\r\n$9\r\ntimestamp\r\n:1000\r\n$8\r\nworkerId\r\n:9\r\n$10\r\nsequenceId\r\n:7\r\n",
			},
			{"LEAF.DECODE 7 layout nope", "-ERR leaf: bad request: layout=\"nope\": must be other\r\n", ""},
			{"LEAF.DECODE 7 LAYOUT", "-ERR syntax error\r\n", ""},
			{"LEAF.DECODE 7 other", "-ERR syntax error\r\n", ""},
			{"LEAF.DECODE 7 LAYOUT other 7", "-ERR syntax error\r\n", ""},
			{"LEAF.DECODE -1", "-ERR leaf: bad request: id=\"-1\": must be a decimal number from 0 to 2^63-1\r\n", ""},
			{"LEAF.DECODE 1x", "-ERR leaf: bad request: id=\"1x\": must be a decimal number from 0 to 2^63-1\r\n", ""},
		}},
		{"tags", []step{
			{`INCR "a b/\xe4\xb8\xad"`, ":1\r\n", ""},
			{`INCR ""`, "-ERR leaf: bad request: tag=\"\": must have 1 to 128 characters\r\n", ""},
			{`INCR "a\x00"`, "-ERR leaf: bad request: tag=\"a\\x00\": must not contain the character U+0000\r\n", ""},
			{`INCR "\xff"`, "-ERR leaf: bad request: tag=\"\\xff\": must be valid UTF-8\r\n", ""},
		}},
		{"PING and ECHO", []step{
			{"PING", "+PONG\r\n", ""},
			{"PING 'a b'", "$3\r\na b\r\n", ""},
			{"PING a b", "-ERR wrong number of arguments for 'ping' command\r\n", ""},
			{`ECHO "\r\n"`, "$2\r\n\r\n\r\n", ""},
			{"ECHO", "-ERR wrong number of arguments for 'echo' command\r\n", ""},
		}},
		{"SELECT", []step{{"SELECT 0", "+OK\r\n", ""}, {"SELECT 1", "-ERR DB index is out of range: there is only 0\r\n", ""}}},
		{"CLIENT", []step{
			{"CLIENT ID", ":1\r\n", ""},
			{"CLIENT GETNAME", "$-1\r\n", "_\r\n"},
			{"CLIENT SETNAME worker-1", "+OK\r\n", ""},
			{"CLIENT GETNAME", "$8\r\nworker-1\r\n", ""},
			{"CLIENT SETNAME 'a b'", "-ERR client name cannot contain spaces, newlines or special characters.\r\n", ""},
			{"CLIENT SETNAME ''", "+OK\r\n", ""},
			{"CLIENT GETNAME", "$-1\r\n", "_\r\n"},
			{"CLIENT SETINFO LIB-NAME redis-py", "+OK\r\n", ""},
			{"CLIENT SETINFO lib-ver 1.0", "+OK\r\n", ""},
			{"CLIENT SETINFO LIB-AGE 1", "-ERR Unrecognized option 'LIB-AGE'\r\n", ""},
			{"CLIENT NO-EVICT on", "+OK\r\n", ""},
			{"CLIENT KILL x", "-ERR unknown subcommand or wrong number of arguments for 'KILL'\r\n", ""},
		}},
		{"unknown", []step{
			{"GET order", "-ERR unknown command 'GET', with args beginning with: 'order' \r\n", ""},
			{"no-such", "-ERR unknown command 'no-such', with args beginning with: \r\n", ""},
			{`"\r\n+OK" "\x1b[2J"`, "-ERR unknown command '??+OK', with args beginning with: '?[2J' \r\n", ""},
		}},
		{"what only grows", []step{
			{"DECR order", "-ERR leaf: IDs only grow: a tag's number can be neither set, lowered nor deleted by a client\r\n", ""},
			{"SET order 5", "-ERR leaf: IDs only grow: a tag's number can be neither set, lowered nor deleted by a client\r\n", ""},
			{"DEL order", "-ERR leaf: IDs only grow: a tag's number can be neither set, lowered nor deleted by a client\r\n", ""},
		}},
		{"COMMAND", []step{
			{"COMMAND COUNT", ":16\r\n", ""},
			{
				"COMMAND INFO incr nope set", "*3\r\n*10\r\n$4\r\nincr\r\n:2\r\n*3\r\n+write\r\n+denyoom\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*0\r\n*0\r\n*0\r\n*0\r\n$-1\r\n$-1\r\n",
				"*3\r\n*10\r\n$4\r\nincr\r\n:2\r\n~3\r\n+write\r\n+denyoom\r\n+fast\r\n:1\r\n:1\r\n:1\r\n~0\r\n*0\r\n*0\r\n*0\r\n_\r\n_\r\n",
			},
			{
				"COMMAND DOCS nope reset", "*2\r\n$5\r\nreset\r\n*6\r\n$7\r\nsummary\r\n$44\r\nMakes the connection as it was at its start.\r\n$5\r\nsince\r\n$5\r\n6.2.0\r\n$5\r\ngroup\r\n$10\r\nconnection\r\n",
				"%1\r\n$5\r\nreset\r\n%3\r\n$7\r\nsummary\r\n$44\r\nMakes the connection as it was at its start.\r\n$5\r\nsince\r\n$5\r\n6.2.0\r\n$5\r\ngroup\r\n$10\r\nconnection\r\n",
			},
			{"COMMAND NOPE", "-ERR unknown subcommand or wrong number of arguments for 'NOPE'\r\n", ""},
		}},
		{"HELLO", []step{
			{"HELLO 4", "-NOPROTO unsupported protocol version\r\n", ""},
			{"HELLO x", "-NOPROTO unsupported protocol version\r\n", ""},
			{"HELLO 2 NOPE", "-ERR Syntax error in HELLO option 'NOPE'\r\n", ""},
			{
				"HELLO 2 SETNAME me", "*14\r\n$6\r\nserver\r\n$4\r\nleaf\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
				"",
			},
			{"CLIENT GETNAME", "$2\r\nme\r\n", ""},
			{
				"HELLO 3", "%7\r\n$6\r\nserver\r\n$4\r\nleaf\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
				"",
			},
			{"RESET", "+RESET\r\n", ""},
			{"CLIENT GETNAME", "$-1\r\n", "$-1\r\n"},
		}},
	} {
		for _, protocol := range []string{"2", "3"} {
			t.Run(tt.name+" in RESP"+protocol, func(t *testing.T) {
				t.Parallel()
				cfg := both()
				cfg.Times = layouts{servertest.Times(func(id int64) (idtime.Decoded, error) {
					d := idtime.Decoded{UnixMilli: 1000, Worker: 2, Sequence: id}
					if id == 8 {
						d.Datacenter = new(int64(3))
					}
					return d, nil
				})}
				c := dial(t, start(t, cfg))
				if protocol == "3" {
					c.send("HELLO 3\r\n")
					if got := c.reply(); !strings.HasPrefix(got, "%7\r\n") {
						t.Fatalf("HELLO 3: %q", got)
					}
				}
				for _, s := range tt.steps {
					want := s.got
					if protocol == "3" && s.got3 != "" {
						want = s.got3
					}
					c.send(s.ask + "\r\n")
					if got := c.reply(); got != want {
						t.Errorf("%s:\n got %q\nwant %q", s.ask, got, want)
					}
				}
			})
		}
	}
}

// TestEveryClass: the first word of an error is the table's, its text is one line, and
// the cause of an internal error is in the log only.
func TestEveryClass(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var log strings.Builder
	cfg := both()
	cfg.Logger = slog.New(slog.NewTextHandler(stringWriter{&mu, &log}, nil))
	c := dial(t, start(t, cfg))
	for _, class := range leaf.Classes() {
		tag := "err." + class.Code
		for _, words := range [][]string{{"INCR", tag}, {"INCRBY", tag, "2"}, {"LEAF.NEXT", tag, "COUNT", "2"}, {"LEAF.SNOWFLAKE", tag}} {
			c.send(request(words...))
			got := c.reply()
			want := fmt.Sprintf("-%s issue tag %q??: %v\r\n", class.RESP, tag, class.Err)
			if class.Err == nil {
				want = "-ERR leaf: internal error, the server's log has the cause\r\n"
			}
			if got != want {
				t.Errorf("%s: got %q, want %q", class.Code, got, want)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(log.String(), "the password is 12345"); n != 4 {
		t.Errorf("the log has the cause %d times, want 4:\n%s", n, log.String())
	}
}

func TestDisabled(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, quiet(respd.Config{})))
	for _, words := range [][]string{{"INCR", "a"}, {"INCRBY", "a", "2"}, {"HINCRBY", "a", "7", "2"}, {"LEAF.NEXT", "a"}, {"LEAF.SNOWFLAKE"}, {"LEAF.SNOWFLAKE", "COUNT", "3"}, {"LEAF.DECODE", "1"}} {
		c.fails("DISABLED leaf: ", words...)
	}
}

// TestInfo reads INFO as clients do: lines name:value in sections.
func TestInfo(t *testing.T) {
	t.Parallel()
	cfg := both()
	cfg.Version = "1.2.3"
	s := start(t, cfg)
	c := dial(t, s)
	c.ask(":1\r\n", "INCR", "a")
	c.fails("ERR", "SET", "a", "1")
	read := func(words ...string) map[string]string {
		c.send(request(words...))
		fields := map[string]string{}
		for line := range strings.SplitSeq(c.reply(), "\r\n") {
			if name, value, ok := strings.Cut(line, ":"); ok {
				fields[name] = value
			} else if strings.HasPrefix(line, "# ") {
				fields[line] = ""
			}
		}
		return fields
	}
	all := read("INFO")
	_, port, _ := strings.Cut(s.Addr().String(), ":")
	for name, want := range map[string]string{
		"redis_version": "7.0.15", "leaf_version": "1.2.3", "redis_mode": "standalone", "tcp_port": port, "# Server": "",
		"connected_clients": "1", "maxclients": "10000", "# Clients": "",
		"total_connections_received": "1", "total_commands_processed": "3", "total_error_replies": "1", "rejected_connections": "0", "# Stats": "",
		"role": "master", "connected_slaves": "0", "# Replication": "",
	} {
		if got, ok := all[name]; !ok || got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	one := read("INFO", "clients")
	if _, ok := one["connected_clients"]; !ok || len(one) != 3 {
		t.Errorf("INFO clients: %v", one)
	}
	for _, section := range []string{"REPLICATION", "replication", "Replication"} {
		if got := read("INFO", section); len(got) != 3 || got["role"] != "master" {
			t.Errorf("INFO %s: %v, want the role and one section", section, got)
		}
	}
	if everything := read("INFO", "everything"); len(everything) != len(all) {
		t.Errorf("INFO everything has %d fields, INFO %d", len(everything), len(all))
	}
	if got, want := s.Stats(), (respd.Stats{Connections: 1, Accepted: 1, Commands: 8, Errors: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestClientInfo: a connection is told of itself alone.
func TestClientInfo(t *testing.T) {
	t.Parallel()
	s := start(t, both())
	c := dial(t, s)
	dial(t, s).ask("+OK\r\n", "CLIENT", "SETNAME", "other")
	c.ask("+OK\r\n", "CLIENT", "SETNAME", "me")
	for _, sub := range []string{"INFO", "LIST"} {
		c.send(request("CLIENT", sub))
		got := c.reply()
		for _, want := range []string{"id=", " addr=" + c.LocalAddr().String(), " laddr=" + s.Addr().String(), " name=me ", " db=0 ", " user=default ", " resp=2\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("CLIENT %s: %q lacks %q", sub, got, want)
			}
		}
		if strings.Contains(got, "other") {
			t.Errorf("CLIENT %s tells of another connection: %q", sub, got)
		}
	}
}

func TestCommandTable(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, both()))
	for _, hello := range []string{"2", "3"} {
		c.send(request("HELLO", hello))
		c.reply()
		for _, words := range [][]string{{"COMMAND"}, {"COMMAND", "INFO"}, {"COMMAND", "LIST"}, {"COMMAND", "DOCS"}} {
			c.send(request(words...))
			got := c.reply()
			for _, name := range []string{"incr", "incrby", "leaf.next", "leaf.snowflake", "leaf.decode", "hincrby", "auth", "hello", "client", "select", "reset", "quit", "ping", "echo", "info", "command"} {
				if !strings.Contains(got, fmt.Sprintf("$%d\r\n%s\r\n", len(name), name)) {
					t.Errorf("%q lacks %s", words, name)
				}
			}
			if strings.Contains(got, "\r\ndecr\r\n") {
				t.Errorf("%q lists decr", words)
			}
		}
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		cfg  respd.Config
		want string // in the error; empty: none
	}{
		{"zero", respd.Config{}, ""},
		{"smallest", respd.Config{MaxConns: 1, RequestTimeout: 1e6, IdleTimeout: 1e6, WriteTimeout: 1e6, MaxRequestBytes: 1 << 10}, ""},
		{"conns", respd.Config{MaxConns: -1}, `max_conns="-1": must be 1 or more`},
		{"request", respd.Config{RequestTimeout: -1}, `request_timeout="-1ns": must be 1ms or more`},
		{"idle", respd.Config{IdleTimeout: 60}, `idle_timeout="60ns": must be 1ms or more`},
		{"write", respd.Config{WriteTimeout: -1e9}, `write_timeout="-1s"`},
		{"small request", respd.Config{MaxRequestBytes: 1023}, `max_request_bytes="1023": must be 1024 to 1048576`},
		{"large request", respd.Config{MaxRequestBytes: 1<<20 + 1}, `max_request_bytes="1048577"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.cfg.Validate()
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if _, err := respd.New(servertest.Listen(t, "127.0.0.1:0"), tt.cfg); !errors.Is(err, leaf.ErrBadRequest) {
				t.Errorf("New: %v", err)
			}
		})
	}
}

// layouts is a layout beside one whose name is other.
type layouts struct{ idtime.Layout }

func (layouts) Of(text string) (idtime.Layout, error) {
	if text != "other" {
		return nil, leaf.BadField("layout", text, "must be other")
	}
	return servertest.Times(func(id int64) (idtime.Decoded, error) {
		return idtime.Decoded{UnixMilli: 1000, Worker: 9, Sequence: id}, nil
	}), nil
}
