package sqldb_test

import (
	"database/sql"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// TestNamespaceOfABackupIsDeleted: docs/GUARANTEES.md says which row to delete after a
// registry was restored from a backup, whose T is too low: all numbers then wait as after
// a wipe, those of a record and fresh ones, also if leaf worker init runs before the nodes, as
// the chart and the compose file do it.
func TestNamespaceOfABackupIsDeleted(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		const now, quiet = int64(1_763_000_000_000), int64(80_000)
		ns := worker.Namespace{Name: "prod", Fingerprint: "layout"}
		p := worker.NewPool(openRecords(t, url))
		if err := p.Init(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		req := worker.Request{
			Namespace: ns, Address: "10.0.0.1:8080", Nonce: "before", Numbers: leaf.Range{Lo: 1, Hi: 3},
			Now: now - 3_600_000, Bound: now - 3_000_000, Margin: 5_000, Quiet: now - 3_000_000,
		}
		if _, err := p.Claim(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		execAll(t, db, "DELETE FROM leaf_worker_namespace")
		if err := p.Init(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		for _, nonce := range []string{"first", "second"} {
			req.Nonce, req.Now, req.Bound, req.Quiet = nonce, now, now+60_000, now+quiet
			if got, err := p.Claim(t.Context(), req); err != nil || got.Floor != now+quiet {
				t.Errorf("claim = %+v, %v; want the floor %d", got, err, now+quiet)
			}
		}
	})
}
