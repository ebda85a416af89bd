package sqldb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf"
)

// checkPath returns leaf.ErrConflict if the session has not the search_path of the URL: a pooler
// can be set to drop it, and all statements would then work on the tables of another schema,
// perhaps another cluster's. It is not segment.ErrSchema, which says of a table that it is not there.
func (c *pgConn) checkPath(ctx context.Context, want string) error {
	results, err := c.conn.Exec(ctx, "SHOW search_path").ReadAll()
	if err != nil {
		return fmt.Errorf("read search_path: %w", err)
	}
	if len(results) == 1 && len(results[0].Rows) == 1 {
		if is := string(results[0].Rows[0][0]); !slices.Equal(schemasOf(is), schemasOf(want)) {
			return fmt.Errorf("%w: the URL says search_path=%s, and the session has search_path=%s: a pooler drops what the URL says (pgbouncer: ignore_startup_parameters), and leads to the tables of another schema. "+
				"Give each schema a user of its own, and set it for the user: ALTER ROLE ... SET search_path = %[2]s; then close the pooler's connections to the server", leaf.ErrConflict, want, is)
		}
	}
	return nil
}

// schemasOf returns the names in a search_path, as PostgreSQL reads them: it folds those without quotes.
func schemasOf(path string) []string {
	names := strings.Split(path, ",")
	for i, name := range names {
		if name = strings.TrimSpace(name); !strings.HasPrefix(name, `"`) {
			name = strings.ToLower(name)
		}
		names[i] = strings.Trim(name, `"`)
	}
	return names
}
