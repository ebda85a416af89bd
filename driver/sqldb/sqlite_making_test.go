package sqldb_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// TestTablesThatAreBeingMade: while a node makes the tables of a new file, a question for its tags waits for them. An answer
// that there are none would tell the administrator to make them.
func TestTablesThatAreBeingMade(t *testing.T) {
	t.Parallel()
	making, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	held := &seam{trip: func(call string, _ bool) {
		if strings.Contains(call, "CREATE TABLE") {
			once.Do(func() { close(making); <-release })
		}
	}}
	s := openThrough(t, "sqlite:"+filepath.Join(t.TempDir(), "leaf.db"), held.below)
	bound, asked := make(chan error, 1), make(chan error, 1)
	go func() { bound <- s.Bind(t.Context(), segment.Binding{Store: "default"}) }()
	<-making
	go func() { _, err := s.Rows(t.Context()); asked <- err }()
	free := time.AfterFunc(300*time.Millisecond, func() { close(release) })
	if err := <-asked; err != nil {
		t.Errorf("the rows of a database whose tables are being made: %v", err)
	}
	if free.Stop() {
		close(release)
		t.Error("the question has not waited for the tables")
	}
	if err := <-bound; err != nil {
		t.Error(err)
	}
}
