package httpd_test

import (
	"context"
	"fmt"
	"mime"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

// comparison is one row of the table in docs/MIGRATION.md: a request, the Java server's
// status, and the answer of this one.
type comparison struct {
	line, field string // of the request; field is "" without one
	java        int
	status      int
	media, text string // of the answer; text is the body, or the code of a problem
	why         string
}

var comparisonRow = regexp.MustCompile("^\\| `([^`]+)`(?: `([^`]+)`)? \\| (\\d{3}) \\| (\\d{3})(?: ([a-z]+/[a-z]+))?(?: `([^`]+)`)? \\| (.+) \\|$")

// comparisons reads the table.
func comparisons(t *testing.T) (rows []comparison) {
	t.Helper()
	data, err := os.ReadFile("../../../docs/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "<!-- wire:")
	table, _, ok := strings.Cut(rest, "<!-- end of wire -->")
	if !ok {
		t.Fatal("docs/MIGRATION.md has no table of the wire")
	}
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		m := comparisonRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			t.Fatalf("this row cannot be read: %s", line)
		}
		row := comparison{line: m[1], field: m[2], media: m[5], text: m[6], why: m[7]}
		row.java, _ = strconv.Atoi(m[3])
		row.status, _ = strconv.Atoi(m[4])
		rows = append(rows, row)
	}
	return rows
}

// TestBesideTheOriginal: the document says what the server does where a client of the Java
// server could see a difference, on the fast path and through net/http.
func TestBesideTheOriginal(t *testing.T) {
	t.Parallel()
	view := func(context.Context, httpd.PageRequest) (httpd.Page, error) { return httpd.Page{Rows: []string{}}, nil }
	rows := comparisons(t)
	if len(rows) < 12 {
		t.Errorf("%d rows were found: rows are missing, or the test does not see them", len(rows))
	}
	for _, row := range rows {
		t.Run(strings.TrimSpace(row.line+" "+row.field), func(t *testing.T) {
			t.Parallel()
			if same := strings.HasPrefix(row.why, "the same"); same && row.java != row.status {
				t.Errorf("%d and %d are not the same", row.java, row.status)
			}
			for _, other := range []string{"", "X-Slow: 1\r\n"} {
				c := dial(t, start(t, quiet(httpd.Config{Access: leaf.Anyone(shop{newIssuer()}, nil), Cache: view, DB: view})))
				field := ""
				if row.field != "" {
					field = row.field + "\r\n"
				}
				c.send(row.line + " HTTP/1.1\r\nHost: localhost\r\n" + field + other + "\r\n")
				r := c.reply()
				media, _, _ := mime.ParseMediaType(r.header.Get("Content-Type"))
				text := r.body
				if media == "application/problem+json" {
					text, media = codeOf(r.body), ""
				}
				if r.status != row.status || media != row.media || row.text != "" && text != row.text {
					t.Errorf("the document says %d %q %q, the server %v (%s)", row.status, row.media, row.text, r, media)
				}
			}
		})
	}
}

// shop is an issuer without the tag "nosuch".
type shop struct{ *issuer }

func (s shop) Next(ctx context.Context, tag string) (int64, error) {
	if tag == "nosuch" {
		return 0, fmt.Errorf("%w: %q", leaf.ErrUnknownTag, tag)
	}
	return s.issuer.Next(ctx, tag)
}

func codeOf(problem string) string {
	_, rest, _ := strings.Cut(problem, `"code":"`)
	code, _, _ := strings.Cut(rest, `"`)
	return code
}
