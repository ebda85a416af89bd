package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/server/console"
)

// TestHundredThousandTags: search, order and pages are the server's, and one walk serves
// many readers.
func TestHundredThousandTags(t *testing.T) {
	t.Parallel()
	f := &fake{tags: 100_000}
	s := serve(t, f, "", nil)
	page := decoded[console.TagPage](s, "api/tags?limit=50")
	if page.Found != 100_000 || page.InUse != 100_000 || len(page.Tags) != 50 || page.Latched != 1 || page.Tags[0].Tag != "tag-000000" || page.Tags[49].Tag != "tag-000049" {
		t.Errorf("first page: %d found, %d tags, %+v", page.Found, len(page.Tags), page.Tags[0])
	}
	if page := decoded[console.TagPage](s, "api/tags?limit=50&offset=99990"); len(page.Tags) != 10 || page.Tags[9].Tag != "tag-099999" {
		t.Errorf("last page: %d tags", len(page.Tags))
	}
	if page := decoded[console.TagPage](s, "api/tags?q=TAG-0123&sort=tag&dir=down"); page.Found != 100 || page.Tags[0].Tag != "tag-012399" {
		t.Errorf("search: %d found", page.Found)
	}
	if page := decoded[console.TagPage](s, "api/tags?sort=stock&dir=down&limit=3"); page.Tags[0].Stock != 99_999 || page.Tags[2].Stock != 99_997 {
		t.Errorf("by stock: %+v", page.Tags)
	}
	if page := decoded[console.TagPage](s, "api/tags?sort=state&limit=1"); !page.Tags[0].Latched {
		t.Errorf("by state: %+v", page.Tags)
	}
	if n := f.walks.Load(); n > 3 {
		t.Errorf("%d walks through the tags for five pages", n)
	}
	if _, _, body := s.ask(http.MethodGet, "api/tags?sort=stock&limit=1", ""); !strings.Contains(body, `"position":"4611686018427387904"`) {
		t.Errorf("an ID beyond 2^53 is no string: %s", body)
	}
	for _, bad := range []string{"sort=no", "limit=201", "limit=-1", "offset=x", "q=" + strings.Repeat("x", 300)} {
		if status, _, _ := s.ask(http.MethodGet, "api/tags?"+bad, ""); status == http.StatusOK {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestRates: a rate is what was issued between two walks.
func TestRates(t *testing.T) {
	t.Parallel()
	f := &fake{tags: 10}
	s := serve(t, f, "", nil)
	if page := decoded[console.TagPage](s, "api/tags"); page.Tags[0].Rate != nil {
		t.Errorf("a rate after one walk: %v", *page.Tags[0].Rate)
	}
	for end := time.Now().Add(10 * time.Second); ; {
		f.issued.Add(1)
		page := decoded[console.TagPage](s, "api/tags?sort=rate&dir=down")
		if first := page.Tags[0]; first.Rate != nil && *first.Rate > 0 {
			if last := page.Tags[9]; *last.Rate != 0 || last.Seconds != nil || first.Seconds == nil || *first.Seconds <= 0 {
				t.Errorf("first %+v, last %+v", first, last)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal("there is no rate")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestHistoryIsBounded: an hour of samples, oldest first.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	f := &fake{}
	m := console.NewMonitor(f)
	now := time.Unix(1_000_000, 0)
	console.SetNow(m, func() time.Time { now = now.Add(5 * time.Second); return now })
	for range 1000 {
		f.issued.Add(10)
		console.Sample(m)
	}
	all := m.History()
	if len(all) != 720 || all[719].At-all[0].At != 719*5 || all[0].IDs != 2 {
		t.Errorf("%d samples, from %+v to %+v", len(all), all[0], all[len(all)-1])
	}
}

// TestManyTagsInTheBrowser shows 100,000 tags, page by page.
func TestManyTagsInTheBrowser(t *testing.T) {
	t.Parallel()
	f := &fake{tags: 100_000}
	s := serve(t, f, "", nil)
	b := open(t, s.url+"#/tags", 1280, 900)
	b.shows("100,000 of 100,000 tags in use")
	b.until(`document.querySelectorAll('table.tags tbody tr').length === 50`)
	b.click("#forth")
	b.shows("51 to 100 of 100,000")
	b.put("#search", "TAG-0991")
	b.until(`document.querySelector('.summary').textContent.startsWith('100 of')`)
	b.click(`[data-sort="stock"]`)
	b.until(`document.querySelector('[aria-sort="descending"] [data-sort="stock"]')`)
}
