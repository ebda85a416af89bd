package httpd_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

// echo is sequences that answer with what they were asked for, and notes it.
type echo struct{ asked []string }

func (s *echo) NextEach(_ context.Context, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	q := requests[0]
	s.asked = append(s.asked, fmt.Sprintf("%q %q %d from %d", sequence, q.Entity, q.Count, q.From))
	lo := max(q.From, 41)
	r := leaf.SequenceResult{Range: leaf.Range{Lo: lo, Hi: lo + int64(q.Count)}}
	if q.Entity == "elsewhere" {
		r = leaf.SequenceResult{Err: fmt.Errorf("%w: nobody owns it", leaf.ErrNotReady)}
	}
	return []leaf.SequenceResult{r}, nil
}

func (s *echo) Open(leaf.Credentials) (*leaf.Issuers, error) {
	return &leaf.Issuers{Segment: leaf.Disabled("segment"), Snowflake: leaf.Disabled("snowflake"), Sequence: s}, nil
}

func (*echo) Guarded() bool { return false }

func TestSequences(t *testing.T) {
	t.Parallel()
	s := &echo{}
	c := dial(t, start(t, quiet(httpd.Config{Access: s})))
	for _, tt := range []struct{ method, target, accept, want, asked string }{
		{"GET", "/v1/sequence/next/chat/7", "", "200 41", `"chat" "7" 1 from 0`},
		{"GET", "/v1/sequence/next/a%2Fb/user%3A7", "", "200 41", `"a/b" "user:7" 1 from 0`},
		{"GET", "/v1/sequence/next/chat/7?count=3", "", "200 41\n42\n43\n", `"chat" "7" 3 from 0`},
		{"GET", "/v1/sequence/next/chat/7?count=2", "application/json", "200 {\"ids\":[\"41\",\"42\"]}\n", `"chat" "7" 2 from 0`},
		{"GET", "/v1/sequence/peek/chat/7", "", "200 41", `"chat" "7" 0 from 0`},
		{"POST", "/v1/sequence/skip/chat/7?to=500", "", "200 500", `"chat" "7" 0 from 500`},
		{"GET", "/v1/sequence/next/chat/elsewhere", "", "503", `"chat" "elsewhere" 1 from 0`},
		{"GET", "/v1/sequence/next/chat/7?count=0", "", "400", ""},
		{"GET", "/v1/sequence/next/chat/7?count=", "", "400", ""},
		{"GET", "/v1/sequence/next/chat/7?n=3", "", "400", ""},
		{"POST", "/v1/sequence/skip/chat/7", "", "400", ""},
		{"POST", "/v1/sequence/skip/chat/7?to=-1", "", "400", ""},
		{"GET", "/v1/sequence/skip/chat/7?to=1", "", "405", ""},
		{"GET", "/v1/sequence/next/chat", "", "404", ""},
	} {
		s.asked = nil
		c.send(tt.method + " " + tt.target + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nAccept: " + tt.accept + "\r\n\r\n")
		r := c.reply()
		if got := fmt.Sprint(r.status, " ", r.body); !strings.HasPrefix(got, tt.want) || strings.Join(s.asked, ";") != tt.asked {
			t.Errorf("%s %s: %s, asked for %q, want %s, %q", tt.method, tt.target, got, s.asked, tt.want, tt.asked)
		}
	}
}
