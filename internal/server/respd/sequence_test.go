package respd_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/respd"
)

// entities is sequences in memory. The entity "elsewhere" gets an error, the sequence "off" is refused.
type entities struct {
	mu    sync.Mutex
	last  map[string]int64
	asked []string
}

func newEntities() *entities { return &entities{last: map[string]int64{}} }

func (s *entities) NextEach(_ context.Context, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := requests[0]
	s.asked = append(s.asked, fmt.Sprintf("%q %q %d", sequence, q.Entity, q.Count))
	switch {
	case sequence == "off":
		return nil, fmt.Errorf("%w: sequence off", leaf.ErrBlocked)
	case q.Entity == "elsewhere":
		return []leaf.SequenceResult{{Err: fmt.Errorf("%w: nobody owns it", leaf.ErrNotReady)}}, nil
	}
	key := sequence + " " + q.Entity
	lo := s.last[key] + 1
	s.last[key] += int64(q.Count)
	return []leaf.SequenceResult{{Range: leaf.Range{Lo: lo, Hi: lo + int64(q.Count)}}}, nil
}

func (s *entities) Open(leaf.Credentials) (*leaf.Issuers, error) {
	return &leaf.Issuers{Segment: leaf.Disabled("segment"), Snowflake: leaf.Disabled("snowflake"), Sequence: s}, nil
}

func (*entities) Guarded() bool { return false }

func TestHIncrBy(t *testing.T) {
	t.Parallel()
	s := newEntities()
	c := dial(t, start(t, quiet(respd.Config{Access: s})))
	const increment = `-ERR leaf: bad request: increment=%q: must be a count from 1 to 100000`
	for _, tt := range []struct{ ask, want, asked string }{
		{"HINCRBY chat 7 1", ":1", `"chat" "7" 1`},
		{"hincrby chat 7 1", ":2", `"chat" "7" 1`},
		{"HINCRBY chat 7 10", ":12", `"chat" "7" 10`},
		{"HINCRBY chat user:8 100000", ":100000", `"chat" "user:8" 100000`},
		{"HINCRBY other 7 1", ":1", `"other" "7" 1`},
		{"HINCRBY chat elsewhere 1", "-NOTREADY leaf: not ready: nobody owns it", `"chat" "elsewhere" 1`},
		{"HINCRBY off 7 1", "-BLOCKED ", `"off" "7" 1`},
		{"HINCRBY chat 7 0", fmt.Sprintf(increment, "0"), ""},
		{"HINCRBY chat 7 -1", fmt.Sprintf(increment, "-1"), ""},
		{"HINCRBY chat 7 100001", fmt.Sprintf(increment, "100001"), ""},
		{"HINCRBY chat 7 x", fmt.Sprintf(increment, "x"), ""},
		{`HINCRBY "" 7 1`, `-ERR leaf: bad request: tag=""`, ""},
		{"HINCRBY chat 7", "-ERR wrong number of arguments for 'hincrby' command", ""},
		{"HSET chat 7 5", "-ERR leaf: IDs only grow", ""},
		{"HDEL chat 7", "-ERR leaf: IDs only grow", ""},
		{"HGET chat 7", "-ERR unknown command 'HGET'", ""},
	} {
		s.asked = nil
		c.send(tt.ask + "\r\n")
		if got := c.reply(); !strings.HasPrefix(got, tt.want) || strings.Join(s.asked, ";") != tt.asked {
			t.Errorf("%s: %q, asked for %q, want %q, %q", tt.ask, got, s.asked, tt.want, tt.asked)
		}
	}
}
