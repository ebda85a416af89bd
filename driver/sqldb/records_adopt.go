package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf/worker"
)

// pastReport is how far the fork's nodes may be ahead of the time that they have
// reported: they write the time of the report every 3 s, not a bound (rule J).
const pastReport = 10 * time.Second

// Reserved implements worker.Records: the numbers in leaf_workerid_alloc, the table of
// the best-known fork of the Java server in its mode "mysql", if the database has it.
// The row's ip_port may adopt its number, from max_timestamp + 10 s on. Where that is
// NULL nothing tells how far the number was used: 10 s from now by the database's
// clock. No other address gets the number, and the table is never written. A row that cannot
// be read reserves its number with a Damage.
//
// It is one statement and remembers nothing, because the table can appear at any time.
// Where the server does not tell a missing table from one that may not be read, as
// MySQL does to a user with rights on single tables only, that is an error: the
// numbers could be in use.
func (r *Records) Reserved(ctx context.Context) (all []worker.Adoptable, err error) {
	defer r.done(ctx, time.Now(), &err, "look for worker IDs of the fork in leaf_workerid_alloc")
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	err = r.look(ctx, func(q querier) (err error) { // the database of another cluster may have no such table
		switch all, err = r.reserved(ctx, q); r.store.dialect.kindOf(err) {
		case kindNoTable:
			all, err = nil, nil
		case kindHidden:
			err = fmt.Errorf("%w: the database does not say whether it has the fork's table leaf_workerid_alloc, whose numbers may be in use;"+
				" grant the user SELECT on the whole database (%w)", worker.ErrSchema, err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (r *Records) reserved(ctx context.Context, q querier) (all []worker.Adoptable, err error) {
	// All columns, because a name that is missing must not look like a missing table.
	rows, err := q.QueryContext(ctx, "SELECT "+r.store.dialect.now+" AS leaf_now, a.* FROM leaf_workerid_alloc a")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var now int64
	var address sql.NullString
	var id, reported readable
	dest := make([]any, len(names))
	for i := range dest {
		dest[i] = new(any)
	}
	for name, to := range map[string]any{"leaf_now": &now, "id": &id, "ip_port": &address, "max_timestamp": &reported} {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("%w: the table leaf_workerid_alloc has no column %s, so it is not the fork's", worker.ErrForeign, name)
		}
		dest[i] = to
	}
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return nil, fmt.Errorf("%w: a row of leaf_workerid_alloc cannot be read: %w", worker.ErrForeign, err)
		}
		all = append(all, forkRow(id, address.String, reported, now))
	}
	return all, rows.Err()
}

// forkRow returns what a row of the fork reserves. One that cannot be read as a whole is
// adopted by no address. Where its number is NULL, a program in Java takes it for 0.
func forkRow(id readable, address string, reported readable, now int64) worker.Adoptable {
	const row = "a row of the fork's table leaf_workerid_alloc"
	switch {
	case id.err != nil:
		return worker.Adoptable{Number: -1, Damage: fmt.Sprintf("%s has an id that cannot be read: %v", row, id.err)}
	case !id.Valid:
		return worker.Adoptable{Number: 0, Damage: row + " has the id NULL"}
	case reported.err != nil:
		return worker.Adoptable{Number: id.Int64, Damage: fmt.Sprintf("%s, of %s, has a max_timestamp that cannot be read: %v", row, address, reported.err)}
	case !reported.Valid:
		reported.Int64 = now
	}
	return worker.Adoptable{
		Number: id.Int64, Address: address,
		Floor: min(reported.Int64, math.MaxInt64-pastReport.Milliseconds()) + pastReport.Milliseconds(),
	}
}

// readable is a number of a row, or why it is none: one row that cannot be read must not
// hide the others.
type readable struct {
	sql.NullInt64

	err error
}

// Scan implements sql.Scanner.
func (r *readable) Scan(from any) error {
	r.err = r.NullInt64.Scan(from)
	return nil
}
