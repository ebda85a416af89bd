package sqldb_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// TestCommitThatHangs: the error of a load whose COMMIT gets no answer names the commit and
// the deadline, and does not blame a proxy. A backup of MariaDB makes commits wait.
func TestCommitThatHangs(t *testing.T) {
	t.Parallel()
	i := server.OwnMariaDB(t)
	applySchema(t, i.URL())
	s := open(t, i.URL())
	if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reserve(t.Context(), request(7)); err != nil { // and the connection is there
		t.Fatal(err)
	}
	db := i.Open(t)
	backup, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer backup.Close()
	for _, stage := range []string{"START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT"} {
		if _, err := backup.ExecContext(t.Context(), "BACKUP STAGE "+stage); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = s.Reserve(ctx, request(7))
	if _, err := backup.ExecContext(t.Context(), "BACKUP STAGE END"); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "commit: ") || strings.Contains(err.Error(), "mixed up") {
		t.Errorf("a COMMIT without an answer: %v; want an error that names the commit and the deadline alone", err)
	}
}
