package httpd_test

import (
	"context"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

// TestPages: /cache and /db ask for the page that the query names, and point at the next.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		query  string
		next   string // what the table says
		ask    httpd.PageRequest
		link   string // without the path
		status int
	}{
		{"", "", httpd.PageRequest{Limit: 1000}, "", 200},
		{"", "order", httpd.PageRequest{Limit: 1000}, "?after=order&limit=1000", 200},
		{"?limit=1", "a b/&<>\"中", httpd.PageRequest{Limit: 1}, "?after=a+b%2F%26%3C%3E%22%E4%B8%AD&limit=1", 200},
		{"?limit=10000&after=a+b%2F%E4%B8%AD", "", httpd.PageRequest{After: "a b/中", Limit: 10000}, "", 200},
		{"?after=&other=1", "", httpd.PageRequest{Limit: 1000}, "", 200},
		{"?limit=0", "", httpd.PageRequest{}, "", 400},
		{"?limit=10001", "", httpd.PageRequest{}, "", 400},
		{"?limit=-1", "", httpd.PageRequest{}, "", 400},
		{"?limit=", "", httpd.PageRequest{}, "", 400},
		{"?limit=1&limit=2", "", httpd.PageRequest{}, "", 400},
		{"?after=a&after=b", "", httpd.PageRequest{}, "", 400},
		{"?after=%ff", "", httpd.PageRequest{}, "", 400},
		{"?after=%00", "", httpd.PageRequest{}, "", 400},
		{"?after=%zz", "", httpd.PageRequest{}, "", 400},
	} {
		for _, path := range []string{"/cache", "/db"} {
			t.Run(path+tt.query, func(t *testing.T) {
				t.Parallel()
				var asked httpd.PageRequest
				read := func(_ context.Context, ask httpd.PageRequest) (httpd.Page, error) {
					asked = ask
					return httpd.Page{Rows: []string{"row"}, Next: tt.next}, nil
				}
				cfg := quiet(httpd.Config{})
				if path == "/cache" {
					cfg.Cache = read
				} else {
					cfg.DB = read
				}
				c := dial(t, start(t, cfg))
				c.send("GET " + path + tt.query + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
				r := c.reply()
				link := ""
				if tt.link != "" {
					link = "<" + path + tt.link + `>; rel="next"`
				}
				if r.status != tt.status || r.header.Get("Link") != link || asked != tt.ask {
					t.Errorf("got %v, Link %q, asked for %+v; want %d, %q, %+v", r, r.header.Get("Link"), asked, tt.status, link, tt.ask)
				}
				if tt.status == 200 && strings.TrimSpace(r.body) != `["row"]` {
					t.Errorf("got %s, want an array", r.body)
				}
			})
		}
	}
}
