package app_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestManyListsBesideLoads: two hundred clients read /db at once from a database that is slow to list
// its rows. The lists share the connections of the loads, and yet a tag whose every ID needs a load
// is served.
func TestManyListsBesideLoads(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	c := embedded(filepath.Join(shortDir(t), "d"))
	c.Stores, c.Snowflake.Enable, c.Segment.FixedStep, c.Segment.MaxWait = []string{d.URL()}, false, true, 2*time.Second
	applySchema(t, c)
	db := d.Open(t)
	for _, statement := range []string{
		"INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('a', 1, 1, '')",
		"RENAME TABLE leaf_alloc TO behind",
		"CREATE FUNCTION slowly(text varchar(256)) RETURNS varchar(256) NOT DETERMINISTIC NO SQL BEGIN DO SLEEP(0.4); RETURN text; END",
		"CREATE VIEW leaf_alloc AS SELECT biz_tag, max_id, step, slowly(description) AS description, update_time FROM behind",
	} {
		execute(t, db, statement)
	}
	a, _ := start(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	first, once, readers := make(chan struct{}), sync.Once{}, sync.WaitGroup{}
	for range 200 {
		readers.Go(func() {
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.Addr()+"/db", nil)
				if err != nil {
					t.Error(err)
					return
				}
				if resp, err := tr.RoundTrip(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					if resp.StatusCode == http.StatusOK {
						once.Do(func() { close(first) })
					}
				}
			}
		})
	}
	select {
	case <-first:
	case <-time.After(time.Minute):
		t.Error("no list was read")
	}
	for range 3 {
		if status, body := get(t, a, "/api/segment/get/a"); status != http.StatusOK {
			t.Errorf("an ID beside the lists: %d %s", status, body)
		}
	}
	cancel()
	readers.Wait()
}
