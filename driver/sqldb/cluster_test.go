package sqldb_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
)

// TestClusterID: all nodes of one database have one ID, also if they ask at the same time
// and after a restart; another database has another.
func TestClusterID(t *testing.T) {
	ids := map[string]bool{}
	for range 2 {
		url := "sqlite:" + filepath.Join(t.TempDir(), "leaf.db")
		got := make([]string, 8)
		var nodes sync.WaitGroup
		for i := range got {
			nodes.Go(func() {
				s, err := sqldb.Open(url, sqldb.Config{})
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); err != nil {
					t.Error(err)
				}
				if got[i], err = s.ClusterID(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		nodes.Wait()
		for _, id := range got {
			if id != got[0] || len(id) != 32 {
				t.Errorf("IDs %q", got)
			}
		}
		ids[got[0]] = true
	}
	if len(ids) != 2 {
		t.Errorf("two databases have the IDs %v", ids)
	}
}
