package sqldb

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/leaf-idgen/leaf/segment"
)

// wholeNumber matches what the databases call their types of whole numbers. Any other
// rounds (DOUBLE above 2^53), compares as text, or cuts digits off.
var wholeNumber = regexp.MustCompile(`^(UNSIGNED )?(TINY|SMALL|MEDIUM|BIG)?INT(EGER|2|4|8)?( ?\(\d+\))?$`)

// checkTypes refuses a leaf_alloc whose numbers are no whole numbers. A narrow or
// unsigned column is accepted: every row is checked when it is used.
func (s *Store) checkTypes(ctx context.Context) (err error) {
	rows, err := s.read.QueryContext(ctx, "SELECT max_id, step FROM leaf_alloc LIMIT 0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.ColumnTypes()
	if err != nil {
		return fmt.Errorf("read the types of leaf_alloc: %w", err)
	}
	for _, c := range columns {
		if name := strings.ToUpper(c.DatabaseTypeName()); !wholeNumber.MatchString(name) {
			return fmt.Errorf("%w: the column %s of leaf_alloc has the type %s, which repeats IDs where it rounds;"+
				" stop every node and Java server, make it bigint (int for step), and compare each max_id with the highest ID in use before one starts",
				segment.ErrSchema, strings.ToLower(c.Name()), name)
		}
	}
	for rows.Next() { // to the end of the answer
	}
	return rows.Err()
}
