package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// TestTablesByPages: /cache and /db show every tag once, over several databases too, in
// pages that follow their links; the order is that of the names' bytes.
func TestTablesByPages(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	c := embedded(dir)
	c.Stores = []string{"a=sqlite:" + filepath.Join(dir, "a.db"), "b=sqlite:" + filepath.Join(dir, "b.db")}
	c.TagRules = []string{"a*=a"}
	applySchema(t, c)
	node, _ := start(t, c)
	want := []string{"B", "a b", "a/1", "a/2", "a/3", "b", "b&c", "z", "中"}
	for _, name := range want {
		if _, err := manage.Ask(t.Context(), node.Backend(), manage.CreateTag{NewRow: segment.NewRow{Tag: name, Start: 1, Step: 5}}); err != nil {
			t.Fatal(err)
		}
		if status, body := get(t, node, "/api/segment/get/"+url.PathEscape(name)); status != 200 {
			t.Fatalf("%s: got %d %s", name, status, body)
		}
	}
	// A row in the wrong database is not this tag: it makes a page shorter, and hides nothing.
	for _, name := range []string{"a0", "a1", "a2"} {
		putRow(t, filepath.Join(dir, "b.db"), name)
	}
	for _, path := range []string{"/cache", "/db"} {
		for _, limit := range []int{1, 2, 3, len(want) - 1, len(want), len(want) + 1, 10_000} {
			var got []string
			pages := 0
			for next := fmt.Sprintf("%s?limit=%d", path, limit); next != ""; pages++ {
				var names []string
				names, next = page(t, node, next)
				if len(names) > limit || pages > 20 {
					t.Fatalf("%s, limit %d: page %d has %q", path, limit, pages, names)
				}
				got = append(got, names...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s by %d: got %q, want %q", path, limit, got, want)
			}
			if limit >= len(want)+3 && pages != 1 {
				t.Errorf("%s by %d: %d pages, want one without a link", path, limit, pages)
			}
		}
	}
}

// page returns the tags of a page and the target of the next one, "" if there is none.
func page(t *testing.T, a *app.App, target string) (names []string, next string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Addr()+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var rows []struct {
		Tag string `json:"tag"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&rows); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", target, resp.StatusCode, err)
	}
	for _, row := range rows {
		names = append(names, row.Tag)
	}
	if link := resp.Header.Get("Link"); link != "" {
		var ok bool
		next, ok = strings.CutSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
		if !ok {
			t.Fatalf("Link: %s", link)
		}
	}
	return names, next
}

// putRow writes a row past all rules.
func putRow(t *testing.T, file, tag string) {
	t.Helper()
	store, err := sqldb.Open("sqlite:"+file, sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Create(t.Context(), segment.NewRow{Tag: tag, Start: 1, Step: 5}); err != nil {
		t.Fatal(err)
	}
}
