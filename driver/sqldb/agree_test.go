package sqldb_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf/segment"
)

// TestAgree: of the nodes that record something under a name at once one decides, and all get its
// value. A database without leaf_meta, as that of Java servers, keeps none.
func TestAgree(t *testing.T) {
	for _, c := range urls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := c.url(t)
			execAll(t, rawDatabase(t, url), "CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint NOT NULL DEFAULT 1, step int NOT NULL,"+
				" description varchar(256), update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)")
			before := open(t, url)
			if got, err := before.Agree(t.Context(), "opaque_key_0", "x"); got != "" || err != nil {
				t.Errorf("without leaf_meta: %q, %v", got, err)
			}
			if _, err := before.ApplySchema(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := make([]string, 8)
			var nodes sync.WaitGroup
			for i := range got {
				nodes.Go(func() {
					s := open(t, url)
					if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); err != nil {
						t.Error(err)
					}
					var err error
					if got[i], err = s.Agree(t.Context(), "opaque_key_0", fmt.Sprint("of node ", i)); err != nil {
						t.Error(err)
					}
				})
			}
			nodes.Wait()
			for _, value := range got {
				if value != got[0] || value == "" {
					t.Errorf("values %q", got)
				}
			}
			if other, err := open(t, url).Agree(t.Context(), "opaque_key_1", "y"); other != "y" || err != nil {
				t.Errorf("another name: %q, %v", other, err)
			}
		})
	}
}
