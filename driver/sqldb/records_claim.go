package sqldb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// Widths of the columns, in characters.
const (
	maxName        = 64 // namespace and nonce
	maxFingerprint = 255
	maxAddress     = 255
)

// maxMoment is far beyond every layout, and leaves room for sums.
const maxMoment = math.MaxInt64 / 4

// boundRow is a row of leaf_worker_bound.
type boundRow struct {
	bound int64
	word  string // random, of the last write; column version
}

// text is the row as a part of a record's version. It has no slash.
func (b boundRow) text() string {
	return fmt.Sprintf("%d,%s", b.bound, strings.ReplaceAll(b.word, "/", "_"))
}

// claimRow is a row of leaf_worker.
type claimRow struct {
	address, nonce string
	floor, bound   int64
	released       bool
	word           string
}

// text is the row as a part of a record's version.
func (c claimRow) text() string {
	return fmt.Sprintf("%q,%q,%d,%d,%t,%s", c.address, c.nonce, c.floor, c.bound, c.released, c.word)
}

func (c *claimRow) dest() []any {
	return []any{&c.address, &c.nonce, &c.floor, &c.bound, &c.released, &c.word}
}

// number is what the tables hold of one worker ID; nil: no such row.
type number struct {
	bound *boundRow
	claim *claimRow
}

// version is the content of both rows, "bound/claim", each empty where it is missing.
func (n number) version() string {
	var bound, claim string
	if n.bound != nil {
		bound = n.bound.text()
	}
	if n.claim != nil {
		claim = n.claim.text()
	}
	return bound + "/" + claim
}

// record returns the rows as one. Where an administrator has changed one of them by hand, the
// higher T counts.
func (n number) record(id int64) worker.Record {
	r := worker.Record{Number: id, Version: n.version()}
	if c := n.claim; c != nil {
		r.Address, r.Nonce, r.Floor, r.Bound, r.Released = c.address, c.nonce, c.floor, c.bound, c.released
	}
	if n.bound != nil {
		r.Bound = max(r.Bound, n.bound.bound)
	}
	return r
}

// List implements worker.Records.
func (r *Records) List(ctx context.Context) (all []worker.Record, err error) {
	defer r.done(ctx, time.Now(), &err, "read %s", r.sql.claims)
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	err = r.look(ctx, func(q querier) (err error) {
		all, err = r.list(ctx, q)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (r *Records) list(ctx context.Context, q querier) (all []worker.Record, err error) {
	rows, err := q.QueryContext(ctx, r.sql.list)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	numbers := make(map[int64]number)
	damage := make(map[int64]string)
	for rows.Next() {
		var id int64
		var isClaim bool
		var c claimRow
		if err := rows.Scan(append([]any{&id, &isClaim}, c.dest()...)...); err != nil {
			damage[r.damaged(rows)] = err.Error()
			continue
		}
		if id < 0 || min(c.floor, c.bound) < 0 || max(c.floor, c.bound) > maxMoment {
			damage[max(id, -1)] = fmt.Sprintf("the tables %s… hold for id %d floor=%d and bound=%d, which are no moments", r.sql.claims, id, c.floor, c.bound)
			continue
		}
		n := numbers[id]
		switch {
		case isClaim && n.claim != nil, !isClaim && n.bound != nil:
			return nil, errTwoRows
		case isClaim:
			n.claim = &c
		default:
			n.bound = &boundRow{bound: c.bound, word: c.word}
		}
		numbers[id] = n
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for id, n := range numbers {
		if damage[id] == "" {
			all = append(all, n.record(id))
		}
	}
	for id, why := range damage {
		all = append(all, worker.Record{Number: id, Damage: why})
	}
	return all, nil
}

// damaged returns the number of a row that cannot be read, -1 if not even that can be.
func (*Records) damaged(rows *sql.Rows) int64 {
	var id sql.NullInt64
	dest := []any{&id}
	for range 1 + len(new(claimRow).dest()) {
		dest = append(dest, new(any))
	}
	if rows.Scan(dest...) != nil || !id.Valid || id.Int64 < 0 {
		return -1
	}
	return id.Int64
}

// Put implements worker.Records. The row of the bound is locked first, by every claim,
// so that writers of one number queue there. A row that should not be there is
// inserted without being looked for: a locked search for it would lock a gap of the
// table, and claimers of other numbers would meet in a deadlock.
func (r *Records) Put(ctx context.Context, rec worker.Record) (version string, err error) {
	if err := checkRecord(rec); err != nil {
		return "", err
	}
	defer r.done(ctx, time.Now(), &err, "write number %d of %s", rec.Number, r.sql.claims)
	seenBound, seenClaim, _ := strings.Cut(rec.Version, "/")
	word := rand.Text()
	next := number{
		bound: &boundRow{bound: rec.Bound, word: word},
		claim: &claimRow{
			address: rec.Address, nonce: rec.Nonce, floor: rec.Floor, bound: rec.Bound,
			released: rec.Released, word: word,
		},
	}
	err = r.transact(ctx, func(conn *sql.Conn) error {
		if !rec.Released { // whatever the rule is, what is given back repeats nothing
			if err := r.sameRule(ctx, conn); err != nil {
				return err
			}
		}
		if err := r.admit(ctx, conn, rec); err != nil {
			return err
		}
		if err := r.putBound(ctx, conn, rec.Number, seenBound, *next.bound); err != nil {
			return err
		}
		return r.putClaim(ctx, conn, rec.Number, seenClaim, *next.claim)
	})
	if errors.Is(err, ErrFileLost) {
		err = fmt.Errorf("%w: %w", worker.ErrLost, err)
	}
	if err != nil {
		return "", err
	}
	return next.version(), nil
}

func (r *Records) putBound(ctx context.Context, conn *sql.Conn, id int64, seen string, next boundRow) error {
	if seen == "" {
		return r.insert(ctx, conn, r.sql.insertBound, id, next.bound, next.word)
	}
	var old boundRow
	found, err := queryRow(ctx, conn, r.sql.lockBound, []any{id}, []any{&old.bound, &old.word})
	switch {
	case err != nil:
		return fmt.Errorf("lock the bound: %w", err)
	case !found:
		return fmt.Errorf("%w: its bound is gone", worker.ErrLost)
	case old.text() != seen:
		return fmt.Errorf("%w: another writer has changed its bound", worker.ErrLost)
	}
	return r.update(ctx, conn, r.sql.updateBound, next.bound, next.word, id, old.word)
}

func (r *Records) putClaim(ctx context.Context, conn *sql.Conn, id int64, seen string, c claimRow) error {
	if seen == "" {
		return r.insert(ctx, conn, r.sql.insertClaim, id, c.address, c.nonce, c.floor, c.bound, c.released, c.word)
	}
	var old claimRow
	found, err := queryRow(ctx, conn, r.sql.lockClaim, []any{id}, old.dest())
	switch {
	case err != nil:
		return fmt.Errorf("lock the claim: %w", err)
	case !found:
		return fmt.Errorf("%w: its claim is gone", worker.ErrLost)
	case old.text() != seen:
		return fmt.Errorf("%w: another writer has changed its claim", worker.ErrLost)
	}
	return r.update(ctx, conn, r.sql.updateClaim, c.address, c.nonce, c.floor, c.bound, c.released, c.word, id, old.word)
}

// insert writes a row that must not be there.
func (r *Records) insert(ctx context.Context, conn *sql.Conn, query string, args ...any) error {
	result, err := conn.ExecContext(ctx, query, args...)
	switch {
	case err != nil && r.store.dialect.kindOf(err) == kindDuplicate:
		return fmt.Errorf("%w: another writer wrote it first", worker.ErrLost)
	case err != nil:
		return fmt.Errorf("insert: %w", err)
	}
	return exactlyOne(result)
}

// update overwrites a locked row. It compares once more, so that it is right even
// where the server's lock is not what it seems.
func (*Records) update(ctx context.Context, conn *sql.Conn, query string, args ...any) error {
	result, err := conn.ExecContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	return exactlyOne(result)
}

func exactlyOne(result sql.Result) error {
	switch n, err := result.RowsAffected(); {
	case err != nil:
		return err
	case n == 0:
		return fmt.Errorf("%w: another writer wrote it although it is locked", worker.ErrLost)
	case n > 1:
		return errTwoRows
	}
	return nil
}

// checkRecord refuses what the columns cannot hold, whatever the database would do.
func checkRecord(r worker.Record) error {
	return errors.Join(
		checkText("address", r.Address, maxAddress),
		checkText("nonce", r.Nonce, maxName),
	)
}

func checkNamespace(n worker.Namespace) error {
	return errors.Join(
		checkText("namespace", n.Name, maxName),
		checkText("layout fingerprint", n.Fingerprint, maxFingerprint),
	)
}

func checkText(field, value string, limit int) error {
	switch {
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return leaf.BadField(field, value, "must be UTF-8 without a zero byte")
	case utf8.RuneCountInString(value) > limit:
		return leaf.BadField(field, value, fmt.Sprintf("must not be longer than %d characters", limit))
	}
	return nil
}
