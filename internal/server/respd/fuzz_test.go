package respd_test

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/server/respd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// FuzzServer: whatever a client sends, in whatever pieces, each request gets exactly
// one reply, which is well formed, or the connection ends after an error; nothing
// panics and nothing hangs. With a token, nothing is issued before it was shown.
func FuzzServer(f *testing.F) {
	for _, seed := range []string{
		request("INCR", "a") + request("INCRBY", "a", "10") + request("PING"),
		request("HINCRBY", "a", "7", "10") + request("HINCRBY", "a", "\x00", "1") + request("HINCRBY", "a", "7", "-1") + request("HSET", "a", "7", "1"),
		request("HELLO", "3") + request("COMMAND", "DOCS") + request("INFO") + request("CLIENT", "INFO") + request("RESET"),
		request("HELLO", "3", "AUTH", "default", "s3cret", "SETNAME", "x") + request("LEAF.NEXT", "a", "COUNT", "100", "TEXT"),
		request("AUTH", "s3cret") + request("LEAF.SNOWFLAKE", "COUNT", "3") + request("LEAF.DECODE", "7") + request("CLIENT", "GETNAME"),
		"AUTH s3cret\r\nCOMMAND INFO incr \"\\xff\\r\\n\"\r\nSELECT 1\r\nSET a 1\r\nQUIT\r\nPING\r\n", "*0\r\n\r\n*-1\r\n*1\r\n$1\r\n\x00\r\n", "*x", "POST / HTTP/1.1\r\n",
		"*2\r\n$4\r\nECHO\r\n$99999\r\n", "ECHO \"\r\n", request("ECHO", "+OK\r\n:1\r\n"), request("\r\n+OK", "\u2028"),
	} {
		f.Add([]byte(seed), uint16(len(seed)/3), false)
		f.Add([]byte(seed), uint16(3), true)
	}
	var mu sync.Mutex
	var log strings.Builder
	servers := map[bool]*pipes{}
	for _, locked := range []bool{false, true} {
		g := &gate{issuers: leaf.Issuers{Segment: &counter{}, Snowflake: &counter{}, Sequence: newEntities()}}
		if locked {
			g.token = "s3cret"
		}
		p := newPipes()
		s, err := respd.New(p, respd.Config{
			Access: g,
			Times:  servertest.Times(func(id int64) (idtime.Decoded, error) { return idtime.Decoded{Sequence: id}, nil }),
			Logger: slog.New(slog.NewTextHandler(stringWriter{&mu, &log}, nil)),
		})
		if err != nil {
			f.Fatal(err)
		}
		run(f, s)
		servers[locked] = p
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint16, locked bool) {
		conn := newScript(string(in))
		conn.first = int(cut)
		servers[locked].conns <- conn
		select {
		case <-conn.closed:
		case <-time.After(20 * time.Second):
			t.Fatalf("%q hangs", in)
		}
		mu.Lock()
		if log.Len() > 0 {
			t.Fatalf("%q: %s", in, log.String())
		}
		mu.Unlock()

		requests, _, bad := respd.Parse(in, 64<<10)
		want, ends, shown := 0, false, !locked
		for _, words := range requests {
			if len(words) > 0 && !ends {
				want++
				name := strings.ToUpper(words[0])
				ends = name == "QUIT" || name == "POST" || name == "HOST:" || name == "GET" && len(words) == 3 && strings.HasPrefix(words[2], "HTTP/")
			}
			for _, word := range words {
				shown = shown || word == "s3cret"
			}
		}
		if bad != nil && !ends {
			want++
		}
		got, issued := 0, false
		for r := bufio.NewReader(strings.NewReader(conn.out.String())); ; got++ {
			reply, err := readReply(r)
			if errors.Is(err, io.EOF) && reply == "" {
				break
			}
			if err != nil {
				t.Fatalf("%q: reply %d is malformed: %v in %q", in, got, err, conn.out)
			}
			issued = issued || reply[0] == ':'
		}
		if got != want {
			t.Fatalf("%q: %d replies, want %d: %q", in, got, want, conn.out)
		}
		if issued && !shown {
			t.Fatalf("%q: an ID without the token: %q", in, conn.out)
		}
	})
}

type stringWriter struct {
	mu *sync.Mutex
	b  *strings.Builder
}

func (w stringWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}
