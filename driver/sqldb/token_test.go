package sqldb_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
)

// TestTokensAtTheLimit: every token that was created opens what it says, also when others have put rows
// beside it, so that there are more than a node keeps.
func TestTokensAtTheLimit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leaf.db")
	s := open(t, "sqlite:"+path)
	bind(t, s)
	create := func(name string) error {
		return s.CreateToken(t.Context(), auth.Token{Name: name, Digest: auth.DigestOf(name), Roles: auth.Roles{Read: true}})
	}
	if err := create("zz"); err != nil {
		t.Fatal(err)
	}
	fill := func(first, last int, digest string) {
		t.Helper()
		if _, err := raw(t, path).ExecContext(t.Context(), fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i+1 FROM n WHERE i < %d) "+
			"INSERT INTO leaf_token (name, digest, roles, created, update_time) SELECT 'a' || i, '%s', 'read', 0, CURRENT_TIMESTAMP FROM n", first, last, digest)); err != nil {
			t.Fatal(err)
		}
	}
	fill(1, auth.MaxTokens-2, auth.DigestOf("a"))
	if err := create("zzz"); err != nil {
		t.Fatalf("the last one that fits: %v", err)
	}
	fill(auth.MaxTokens, auth.MaxTokens, "of another program") // beside the limit, as a token that is created at the same moment
	all, err := s.NamedTokens(t.Context())
	if err != nil || len(all) != auth.MaxTokens || all[len(all)-1].Name != "zzz" {
		t.Errorf("%d tokens, %v", len(all), err)
	}
	if err := create("zzzz"); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("one too many: %v", err)
	}
}
