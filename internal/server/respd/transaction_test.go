package respd_test

import (
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
)

// TestTransaction: a client that begins a transaction gets no ID of it, however the bytes
// arrive, and goes on as before at its end.
func TestTransaction(t *testing.T) {
	t.Parallel()
	const refused = "-ERR leaf: MULTI is refused: there are no transactions here, and everything up to EXEC or DISCARD is refused, too, " +
		"and issues no ID; send these commands as a pipeline without MULTI; after a MULTI without EXEC send DISCARD\r\n"
	type step struct{ ask, want string }
	for _, tt := range []struct {
		name  string
		token string
		steps []step
	}{
		{"to EXEC", "", []step{
			{"MULTI", refused},
			{"INCR order", refused},
			{"INCRBY order 5", refused},
			{"LEAF.NEXT order COUNT 2", refused},
			{"LEAF.SNOWFLAKE", refused},
			{"PING", refused},
			{"INCR", refused},
			{"EXEC", refused},
			{"INCR order", ":1\r\n"},
		}},
		{"to DISCARD", "", []step{{"multi", refused}, {"INCR order", refused}, {"discard", "+OK\r\n"}, {"INCR order", ":1\r\n"}}},
		{"to RESET", "", []step{{"MULTI", refused}, {"INCR order", refused}, {"RESET", "+RESET\r\n"}, {"INCR order", ":1\r\n"}}},
		{"one in another", "", []step{{"MULTI", refused}, {"MULTI", refused}, {"INCR order", refused}, {"EXEC", refused}, {"INCR order", ":1\r\n"}}},
		{"with an argument", "", []step{{"MULTI now", refused}, {"INCR order", refused}, {"EXEC", refused}}},
		{"an unknown command", "", []step{
			{"MULTI", refused},
			{"GET order", "-ERR unknown command 'GET', with args beginning with: 'order' \r\n"},
			{"INCR order", refused},
			{"EXEC", refused},
		}},
		{"of a stranger", "secret", []step{
			{"MULTI", refused},
			{"AUTH secret", refused},
			{"INCR order", refused},
			{"EXEC", refused},
			{"INCR order", "-NOAUTH Authentication required.\r\n"},
			{"AUTH secret", "+OK\r\n"},
			{"INCR order", ":1\r\n"},
		}},
		{"none", "", []step{{"EXEC", "-ERR EXEC without MULTI\r\n"}, {"DISCARD", "-ERR DISCARD without MULTI\r\n"}, {"INCR order", ":1\r\n"}}},
	} {
		for _, together := range []bool{false, true} {
			name := tt.name
			if together {
				name += " in one piece"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				cfg := both()
				cfg.Access = &gate{token: tt.token, issuers: leaf.Issuers{Segment: newIssuer(), Snowflake: newIssuer()}}
				c := dial(t, start(t, cfg))
				if together {
					var all strings.Builder
					for _, s := range tt.steps {
						all.WriteString(s.ask + "\r\n")
					}
					c.send(all.String())
				}
				for _, s := range tt.steps {
					if !together {
						c.send(s.ask + "\r\n")
					}
					if got := c.reply(); got != s.want {
						t.Errorf("%s:\n got %q\nwant %q", s.ask, got, s.want)
					}
				}
			})
		}
	}
}
