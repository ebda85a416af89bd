package httpd_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

var update = flag.Bool("update", false, "rewrite the replies in testdata")

// wireConfig serves all routes, with fixed contents.
func wireConfig() httpd.Config {
	return quiet(httpd.Config{
		Access: leaf.Anyone(newIssuer(), nil),
		Cache: func(context.Context, httpd.PageRequest) (httpd.Page, error) {
			return httpd.Page{Rows: []map[string]any{{"tag": "order", "value": "5"}}}, nil
		},
		DB: func(context.Context, httpd.PageRequest) (httpd.Page, error) { return httpd.Page{}, leaf.ErrNotReady },
		Ready: func() leaf.Readiness {
			return leaf.Readiness{Segment: leaf.ModeReadiness{Enabled: true, Reasons: []string{"database a: no answer yet"}}}
		},
	})
}

// TestWire replays testdata/*.txtar: conversations, each on a connection of a
// server of its own. A file NAME.request holds the bytes to send, NAME.reply the
// bytes that come back until the server closes, with Date blanked. Lines end in
// LF there and in CRLF on the wire; "\r", "\n" and "\\" stand for themselves.
func TestWire(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no test data: ", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			comment, sections := parseArchive(string(data))
			want := map[string]string{}
			for _, s := range sections {
				want[s.name] = s.text
			}
			out := comment
			for _, s := range sections {
				name, ok := strings.CutSuffix(s.name, ".request")
				if !ok {
					continue
				}
				got := toText(converse(t, toWire(s.text)))
				if diff := cmp.Diff(want[name+".reply"], got); diff != "" && !*update {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
				out += "-- " + s.name + " --\n" + s.text + "-- " + name + ".reply --\n" + got
			}
			if *update {
				if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// section is one file of a txtar archive.
type section struct{ name, text string }

var sectionLine = regexp.MustCompile(`(?m)^-- (\S+) --\n`)

func parseArchive(data string) (comment string, sections []section) {
	at := sectionLine.FindAllStringSubmatchIndex(data, -1)
	comment = data[:at[0][0]]
	for i, m := range at {
		end := len(data)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		sections = append(sections, section{data[m[2]:m[3]], data[m[1]:end]})
	}
	return comment, sections
}

// converse sends request over a socket and returns what comes back.
func converse(t *testing.T, request string) string {
	t.Helper()
	c := dial(t, start(t, wireConfig()))
	c.send(request)
	return withoutMadeID(withoutDate(c.rest()))
}

var escapes = strings.NewReplacer(`\r`, "\r", `\n`, "\n", `\\`, `\`)

func toWire(text string) string {
	return escapes.Replace(strings.ReplaceAll(text, "\n", "\r\n"))
}

func toText(wire string) string {
	wire = strings.ReplaceAll(wire, `\`, `\\`)
	wire = strings.ReplaceAll(wire, "\r\n", "\x00")
	wire = strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(wire)
	wire = strings.ReplaceAll(wire, "\x00", "\n")
	if wire != "" && !strings.HasSuffix(wire, "\n") {
		wire += "\n"
	}
	return wire
}

// TestBothPathsAreEqualOnTheWire: every class of error, on both paths and modes,
// byte for byte.
func TestBothPathsAreEqualOnTheWire(t *testing.T) {
	t.Parallel()
	tags := []string{"order", "panic", "cancelled", "order.pay", "~", ".", ".."}
	for _, c := range leaf.Classes() {
		tags = append(tags, "err."+c.Code)
	}
	for _, mode := range []string{"segment", "snowflake"} {
		for _, tag := range tags {
			t.Run(mode+"/"+tag, func(t *testing.T) {
				t.Parallel()
				head := "GET /api/" + mode + "/get/" + tag + " HTTP/1.1\r\nHost: x\r\n"
				if _, _, ok := httpd.Understood([]byte(head + "\r\n")); !ok {
					t.Fatal("the fast path does not understand it")
				}
				var got [2]string
				for i, extra := range []string{"", "X-Slow: 1\r\n"} {
					cfg := wireConfig()
					cfg.Access = leaf.Anyone(newIssuer(), newIssuer())
					c := dial(t, start(t, cfg))
					c.send(head + extra + "\r\n" + head + extra + "\r\n")
					got[i] = withoutMadeID(withoutDate(c.rest()))
				}
				if diff := cmp.Diff(got[1], got[0]); diff != "" {
					t.Errorf("fast path differs (-net/http +fast):\n%s", diff)
				}
				if !strings.HasPrefix(got[0], "HTTP/1.1 ") || strings.Count(got[0], "HTTP/1.1 ") != 2 {
					t.Errorf("not two replies: %q", got[0])
				}
			})
		}
	}
}

// TestInternalErrorsAreLogged: the cause of a 500 is in the log and nowhere else.
func TestInternalErrorsAreLogged(t *testing.T) {
	t.Parallel()
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			t.Parallel()
			log := &syncBuffer{}
			cfg := wireConfig()
			cfg.Logger = log.logger()
			c := dial(t, start(t, cfg))
			for tag, cause := range map[string]string{"err.internal": "12345", "panic": "the issuer is broken"} {
				c.send(path.get(tag))
				if r := c.reply(); r.status != 500 || strings.Contains(r.body, cause) {
					t.Errorf("tag %s: got %v", tag, r)
				}
				if !strings.Contains(log.String(), cause) {
					t.Errorf("tag %s: the log lacks %q: %s", tag, cause, log.String())
				}
			}
			c.ask(path.get("order"), "1") // the connection survived
		})
	}
}

func TestStateErrors(t *testing.T) {
	t.Parallel()
	cfg := quiet(httpd.Config{
		Cache: func(context.Context, httpd.PageRequest) (httpd.Page, error) {
			return httpd.Page{Rows: make(chan int)}, nil
		},
		DB: func(context.Context, httpd.PageRequest) (httpd.Page, error) { panic(errors.New("broken")) },
	})
	c := dial(t, start(t, cfg))
	for _, path := range []string{"/cache", "/db"} {
		c.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if r := c.reply(); r.status != 500 || !bytes.Contains([]byte(r.body), []byte(`"code":"internal"`)) {
			t.Errorf("%s: got %v", path, r)
		}
	}
}
