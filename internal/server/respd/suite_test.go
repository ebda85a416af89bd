package respd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/format"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// TestSuite runs the behaviour suite in both protocols, and for INCRBY, which can only
// say one number.
func TestSuite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		wire wire
		opt  servertest.Options
	}{
		{"RESP2", wire{protocol: "2"}, servertest.Options{NoCancel: true}},
		{"RESP3", wire{protocol: "3"}, servertest.Options{NoCancel: true}},
		{"INCRBY", wire{protocol: "2", incrBy: true}, servertest.Options{NoCancel: true, OneRange: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.opt.StartAs = func(t testing.TB, a leaf.Access, shown leaf.Credentials) leaf.Issuers {
				return tt.wire.start(t, a, nil, shown)
			}
			if !tt.wire.incrBy { // which has no word for a format
				tt.opt.StartFormats = func(t testing.TB, a leaf.Access, k *format.Formats) servertest.Texts {
					return tt.wire.start(t, a, k, leaf.Credentials{}).Segment.(wireIssuer).texts
				}
			}
			tt.opt.Run(t, func(t testing.TB, a leaf.Access) leaf.Issuers { return tt.wire.start(t, a, nil, leaf.Credentials{}) })
		})
	}
}

// wire is a client: a connection per call.
type wire struct {
	addr     string
	shown    leaf.Credentials
	protocol string
	incrBy   bool // for batches of segment mode
}

func (w wire) start(t testing.TB, a leaf.Access, k *format.Formats, shown leaf.Credentials) leaf.Issuers {
	cfg := both()
	cfg.Access, cfg.Formats = a, k
	w.addr, w.shown = start(t, cfg).Addr().String(), shown
	return leaf.Issuers{Segment: wireIssuer{w, true}, Snowflake: wireIssuer{w, false}}
}

type wireIssuer struct {
	wire
	segment bool
}

func (i wireIssuer) Next(ctx context.Context, tag string) (int64, error) {
	words := []string{"LEAF.SNOWFLAKE", tag}
	if i.segment {
		words = []string{"INCR", tag}
	}
	ids, err := i.ask(ctx, words)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

func (i wireIssuer) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	count := strconv.Itoa(n)
	words := []string{"LEAF.SNOWFLAKE", tag, "COUNT", count}
	switch {
	case i.segment && i.incrBy:
		ids, err := i.ask(ctx, []string{"INCRBY", tag, count})
		if err != nil {
			return nil, err
		}
		return []leaf.Range{{Lo: ids[0] - int64(n) + 1, Hi: ids[0] + 1}}, nil
	case i.segment:
		words[0] = "LEAF.NEXT"
	}
	ids, err := i.ask(ctx, words)
	var ranges []leaf.Range
	for _, id := range ids {
		ranges = append(ranges, leaf.Range{Lo: id, Hi: id + 1})
	}
	return ranges, err
}

// texts asks for IDs in a format. It wants numbers as integers, and other texts as strings.
func (w wire) texts(ctx context.Context, mode, tag string, n int, name string) ([]string, error) {
	words := []string{"LEAF.NEXT", tag, "FORMAT", name}
	if mode == leaf.SnowflakeMode {
		words[0] = "LEAF.SNOWFLAKE"
	}
	if n > 0 {
		words = append(words, "COUNT", strconv.Itoa(n))
	}
	reply, err := w.fetch(ctx, words)
	if err != nil {
		return nil, err
	}
	if isString := strings.Contains(reply, "$"); isString != (name != format.Number) {
		return nil, fmt.Errorf("%s is %.100q: want a string exactly if it is opaque", name, reply)
	}
	return elements(reply), nil
}

// ask sends one request on a connection of its own and returns the integers of the reply.
func (w wire) ask(ctx context.Context, words []string) ([]int64, error) {
	reply, err := w.fetch(ctx, words)
	if err != nil {
		return nil, err
	}
	return integers(reply)
}

// fetch sends one request on a connection of its own and returns the reply, if it is no error.
func (w wire) fetch(ctx context.Context, words []string) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", w.addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	hello := []string{"HELLO", w.protocol}
	user := w.shown.Name
	if w.shown.Token != "" {
		if user == "" {
			user = "default"
		}
		hello = append(hello, "AUTH", user, w.shown.Token)
	} else if user != "" {
		hello = append(hello, "SETNAME", user)
	}
	if _, err := fmt.Fprint(conn, request(hello...), request(words...)); err != nil {
		return "", err
	}
	r := bufio.NewReader(conn)
	for _, step := range []string{"HELLO", "request"} {
		reply, err := readReply(r)
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			return "", context.DeadlineExceeded
		case err != nil:
			return "", fmt.Errorf("%s: %w", step, err)
		case reply[0] == '-':
			return "", errorOf(strings.TrimSuffix(reply[1:], "\r\n"))
		case step == "request":
			return reply, nil
		}
	}
	return "", nil
}

// elements returns the integers and strings of a reply, in whatever they are wrapped.
func elements(reply string) (all []string) {
	for line := range strings.Lines(reply) {
		line = strings.TrimSuffix(line, "\r\n")
		if line[0] != '*' && line[0] != '$' {
			all = append(all, strings.TrimPrefix(line, ":"))
		}
	}
	return all
}

// integers returns those of a reply.
func integers(reply string) ([]int64, error) {
	var ids []int64
	for _, text := range elements(reply) {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// errorOf makes of an error reply what a client for Leaf would make of it.
func errorOf(line string) error {
	word, text, _ := strings.Cut(line, " ")
	if word == "WRONGPASS" {
		word = "NOAUTH"
	}
	for _, class := range leaf.Classes() {
		switch {
		case class.Err == nil, class.RESP != word:
		case class.RESP == "ERR" && !strings.Contains(text, class.Err.Error()):
		case class.Retryable:
			if _, after, ok := strings.Cut(text, "retry after "); ok {
				if d, err := time.ParseDuration(after); err == nil {
					return leaf.Later(class.Err, text, d)
				}
			}
			return fmt.Errorf("%s (%w)", text, class.Err)
		default:
			return fmt.Errorf("%s (%w)", text, class.Err)
		}
	}
	return errors.New(line)
}
