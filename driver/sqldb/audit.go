package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf/internal/audit"
	"github.com/leaf-idgen/leaf/segment"
)

var _ audit.Store = (*Store)(nil)

// entriesAtOnce is how many old entries go with a new one.
const entriesAtOnce = 100

// lastID is above the ID of every entry.
const lastID = "g"

// auditStatements are the texts for leaf_audit.
type auditStatements struct {
	record  string // id, node, who, address, operation, object, old_value, new_value, result
	entries string // those between two IDs: id, id; conditions and the end follow
	end     string // number of rows
	old     string // ids: id
	forget  string // id
	clock   string // the database's, in ms since 1970
}

func (d *dialect) auditStatements() auditStatements {
	const columns = "id, node, who, address, operation, object, old_value, new_value, result"
	return auditStatements{
		record:  d.bind("INSERT INTO leaf_audit (" + columns + ", update_time) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, CURRENT_TIMESTAMP)" + d.onConflict("id", "update_time")),
		entries: "SELECT " + columns + " FROM leaf_audit WHERE id < ? AND id >= ?",
		end:     " ORDER BY id DESC LIMIT ?",
		old:     d.bind(fmt.Sprintf("SELECT id FROM leaf_audit WHERE id < ? ORDER BY id LIMIT %d", entriesAtOnce)),
		forget:  d.bind("DELETE FROM leaf_audit WHERE id = ?"),
		clock:   "SELECT " + d.now,
	}
}

// Record implements audit.Store.
func (s *Store) Record(ctx context.Context, e audit.Entry, keep time.Duration) (err error) {
	if err := e.Validate(); err != nil {
		return err
	}
	defer s.finishAudit(ctx, time.Now(), &err, "record a change")
	if err := s.exec(ctx, s.dialect.audit.record, e.ID, e.Node, e.Who, e.Address, e.Operation, e.Object, e.From, e.To, e.Result); err != nil {
		return err
	}
	if err := s.forgetEntries(ctx, e, keep); err != nil { // the entry is there all the same
		s.cfg.Logger.Debug("old entries of leaf_audit could not be deleted", "store", s.Redacted(), "error", err)
	}
	return nil
}

// forgetEntries deletes old entries. It looks for them first, because a DELETE that searches
// would lock rows that it leaves.
func (s *Store) forgetEntries(ctx context.Context, e audit.Entry, keep time.Duration) error {
	var now int64
	if _, err := queryRow(ctx, s.read, s.dialect.audit.clock, nil, []any{&now}); err != nil {
		return err
	}
	var gone []string
	err := eachRow(ctx, s.read, s.dialect.audit.old, []any{audit.Oldest(e, time.UnixMilli(now), keep)}, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		gone = append(gone, id)
		return err
	})
	for _, id := range gone {
		err = errors.Join(err, s.exec(ctx, s.dialect.audit.forget, id))
	}
	return err
}

// Entries implements audit.Store. The database may compare texts by a collation of its own, so
// what it finds is compared once more.
func (s *Store) Entries(ctx context.Context, q audit.Query) (page []audit.Entry, next string, err error) {
	if err := q.Validate(); err != nil {
		return nil, "", err
	}
	defer s.finishAudit(ctx, time.Now(), &err, "read changes")
	query, args := s.dialect.audit.entries, []any{lastID, audit.Lowest(q.Since)}
	if q.Before != "" {
		args[0] = q.Before
	}
	if q.Object != "" {
		query, args = query+" AND object = ?", append(args, q.Object)
	}
	if q.Who != "" {
		query, args = query+" AND who = ?", append(args, q.Who)
	}
	query, args = s.dialect.bind(query+s.dialect.audit.end), append(args, q.Limit+1)
	found, last := 0, ""
	each := func(rows *sql.Rows) error {
		var e audit.Entry
		if err := rows.Scan(&e.ID, &e.Node, &e.Who, &e.Address, &e.Operation, &e.Object, &e.From, &e.To, &e.Result); err != nil {
			return err
		}
		if found++; found > q.Limit {
			next = last
			return nil
		}
		if last, e.Time = e.ID, audit.TimeOf(e.ID); q.Has(e) {
			page = append(page, e)
		}
		return nil
	}
	if err := s.look(ctx, func(by querier) error {
		page, found, last, next = nil, 0, "", "" // it may be called again
		return eachRow(ctx, by, query, args, each)
	}); err != nil {
		return nil, "", err
	}
	return page, next, nil
}

// finishAudit finishes a call as Store.done does.
func (s *Store) finishAudit(ctx context.Context, start time.Time, err *error, step string) {
	s.finish(ctx, start, err, func(err error) error {
		if s.dialect.kindOf(err).missing() && !errors.Is(err, segment.ErrSchema) {
			return s.schemaError("the database has no usable table leaf_audit", err)
		}
		return err
	}, "%s", step)
}
