package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf/internal/takeover"
)

// autoincrement reads the counters of columns that number their rows, and sequences.
func (s *Source) autoincrement(ctx context.Context, conn *sql.Conn, names []string) ([]takeover.Counter, error) {
	if s.postgres() {
		return s.postgresSequences(ctx, conn, names)
	}
	all, err := s.mysqlColumns(ctx, conn, names)
	if err != nil {
		return nil, err
	}
	sequences, err := s.mariaDBSequences(ctx, conn, names)
	return append(all, sequences...), err
}

// mysqlMargin is how far a counter of AUTO_INCREMENT may be behind the numbers that are in use: a
// statement under way with innodb_autoinc_lock_mode=0, rows of other members of a cluster.
const mysqlMargin = 1000

// mysqlFresh makes information_schema tell the counters of now: MySQL remembers them for a day.
const mysqlFresh = "SET NAMES utf8mb4 /*!80003 , @@session.information_schema_stats_expiry = 0 */"

const mysqlCounters = "t.TABLE_NAME, c.COLUMN_NAME, c.COLUMN_TYPE, t.AUTO_INCREMENT, @@global.auto_increment_increment FROM information_schema.TABLES t" +
	" JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME AND c.EXTRA LIKE '%auto_increment%'" +
	" WHERE t.TABLE_SCHEMA = DATABASE() ORDER BY t.TABLE_NAME"

// mysqlColumns reads AUTO_INCREMENT: the number that the next row gets. A statement takes its
// numbers from it before it inserts its rows. The highest number in the table can be above it: an
// UPDATE moves no counter, and older servers set it anew at each start.
func (s *Source) mysqlColumns(ctx context.Context, conn *sql.Conn, names []string) (all []takeover.Counter, err error) {
	if _, err := conn.ExecContext(ctx, mysqlFresh); err != nil {
		return nil, err
	}
	var columns []string
	var table, column, kind string
	var next readable
	var turns int64
	err = s.each(ctx, conn, mysqlCounters, []any{&table, &column, &kind, &next, &turns}, func() error {
		table, column, kind := table, column, kind // Stop keeps them
		if len(names) > 0 && !slices.Contains(names, table) {
			return nil
		}
		c := takeover.Counter{
			Name: table, End: max(1, next.Int64), Margin: mysqlMargin, Follows: true,
			State: fmt.Sprintf("column %s of table %s, AUTO_INCREMENT %d", column, table, next.Int64),
			Stop: func(int64) string {
				return fmt.Sprintf("ALTER TABLE %s MODIFY %s %s NOT NULL", s.store.dialect.column(table), s.store.dialect.column(column), kind)
			},
		}
		if turns > 1 {
			c.State += fmt.Sprintf(", one of servers that count in turns (auto_increment_increment %d): name each that has a database of its own", turns)
		}
		if next.err != nil {
			c.Problem = fmt.Sprintf("AUTO_INCREMENT of table %s cannot be read: %v", table, next.err)
		}
		all, columns = append(all, c), append(columns, column)
		return nil
	})
	for i := range all {
		err = errors.Join(err, s.fill(ctx, conn, &all[i], s.store.dialect.column(all[i].Name), s.store.dialect.column(columns[i])))
	}
	return all, err
}

// fill reads the highest number in a table. One that cannot be read hides no other counter.
func (s *Source) fill(ctx context.Context, conn *sql.Conn, c *takeover.Counter, table, column string) error {
	var highest readable
	err := s.each(ctx, conn, "MAX("+column+") FROM "+table, []any{&highest}, func() error { return highest.err })
	switch {
	case errors.Is(err, errReplica):
		return err
	case c.Problem != "":
	case err != nil:
		c.Problem = fmt.Sprintf("the highest number in table %s cannot be read: %v", table, err)
	case highest.Valid:
		c.Filled = max(0, min(highest.Int64, math.MaxInt64-1)+1)
		c.State += fmt.Sprintf(", highest number in the table %d", highest.Int64)
	}
	return nil
}

// mariaDBSequences reads what no cache of the server holds yet.
func (s *Source) mariaDBSequences(ctx context.Context, conn *sql.Conn, names []string) (all []takeover.Counter, err error) {
	var found []string
	var name string
	err = s.each(ctx, conn, "TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'SEQUENCE' ORDER BY TABLE_NAME", []any{&name}, func() error {
		if len(names) == 0 || slices.Contains(names, name) {
			found = append(found, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range found {
		quoted := s.store.dialect.column(name)
		var q sequence
		err := s.read(ctx, conn, &q, "next_not_cached_value, increment, minimum_value, maximum_value, cycle_option, cache_size FROM "+quoted,
			&q.value, &q.increment, &q.lowest, &q.highest, &q.cycle, &q.cache)
		if err != nil {
			return nil, err
		}
		c := q.counter(name)
		c.Stop = q.stop("ALTER SEQUENCE " + strings.ReplaceAll(quoted, "%", "%%") + " MAXVALUE %d NOCYCLE")
		all = append(all, c)
	}
	return all, nil
}

// sequence is a sequence of a database.
type sequence struct {
	value, increment, lowest, highest, cache readable
	cycle                                    bool
}

// read reads what a sequence says of itself. One that cannot be read hides no other.
func (s *Source) read(ctx context.Context, conn *sql.Conn, q *sequence, columns string, dest ...any) error {
	err := s.each(ctx, conn, columns, dest, func() error { return q.value.err })
	if errors.Is(err, errReplica) {
		return err
	}
	q.value.err = err
	return nil
}

// counter has an end above the value, whether that was handed out or comes next, and above the
// second number: no sequence can be made to end before one of them. Programs make the IDs up to the next
// number, too, of one that they have: EF Core, Doctrine and Hibernate (pooled-lo) take ranges so.
func (q *sequence) counter(name string) takeover.Counter {
	value, own := q.value.Int64, max(1, q.increment.Int64)-1
	if highest := q.last(); highest < math.MaxInt64 && value == highest+1 { // no number comes next in MariaDB
		value = highest
	}
	c := takeover.Counter{
		Name: name, End: after(min(max(value, min(q.lowest.Int64, math.MaxInt64-1)+1), math.MaxInt64-own) + own),
		State: fmt.Sprintf("sequence %s, value %d, increment %d, cache %d", name, q.value.Int64, q.increment.Int64, q.cache.Int64),
	}
	if own > 0 {
		c.State += ", perhaps one of servers that count in turns: then name each"
	}
	switch {
	case q.value.err != nil:
		c.Problem = fmt.Sprintf("the sequence %s cannot be read: %v", name, q.value.err)
	case q.increment.Int64 == 0: // MariaDB
		c.Problem = fmt.Sprintf("the increment of sequence %s is 0: the servers of a cluster count in it in turns", name)
	case q.increment.Int64 < 0:
		c.Problem = fmt.Sprintf("the sequence %s counts down", name)
	case q.cycle:
		c.Problem = fmt.Sprintf("the sequence %s begins anew when it is used up (CYCLE), and then repeats its numbers", name)
	}
	return c
}

// last is the last number of a sequence: the largest there is, if that cannot be read, as of one AS BIGINT UNSIGNED in MariaDB.
func (q *sequence) last() int64 {
	if q.highest.err != nil {
		return math.MaxInt64
	}
	return q.highest.Int64
}

// stop returns the statement that ends a sequence before programs make IDs of first or above, and none if
// it ends there by itself.
func (q *sequence) stop(statement string) func(first int64) string {
	return func(first int64) string {
		last := first - max(1, q.increment.Int64)
		if q.last() <= last {
			return ""
		}
		return fmt.Sprintf(statement, last)
	}
}

// The sequences of the schema in which the user creates tables, with the column that each one
// numbers.
const postgresSequenceList = "quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relname, s.seqincrement, s.seqmin, s.seqmax, s.seqcycle, s.seqcache," +
	" COALESCE(quote_ident(tn.nspname) || '.' || quote_ident(t.relname), ''), COALESCE(quote_ident(a.attname), '')" +
	" FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_sequence s ON s.seqrelid = c.oid" +
	" LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass" +
	" AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i')" +
	" LEFT JOIN pg_class t ON t.oid = d.refobjid LEFT JOIN pg_namespace tn ON tn.oid = t.relnamespace" +
	" LEFT JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid" +
	" WHERE n.nspname = current_schema() ORDER BY c.relname"

// postgresSequences reads last_value, which is above what sessions hold in their caches. A
// sequence never goes back, also when the transaction does.
func (s *Source) postgresSequences(ctx context.Context, conn *sql.Conn, names []string) (all []takeover.Counter, err error) {
	type found struct {
		sequence

		quoted, name, table, column string
	}
	var list []found
	var f found
	err = s.each(ctx, conn, postgresSequenceList, []any{&f.quoted, &f.name, &f.increment, &f.lowest, &f.highest, &f.cycle, &f.cache, &f.table, &f.column}, func() error {
		if len(names) == 0 || slices.Contains(names, f.name) {
			list = append(list, f)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		if err := s.read(ctx, conn, &f.sequence, "last_value FROM "+f.quoted, &f.value); err != nil {
			return nil, err
		}
		c := f.counter(f.name)
		c.Stop = f.stop("ALTER SEQUENCE " + strings.ReplaceAll(f.quoted, "%", "%%") + " MAXVALUE %d NO CYCLE")
		if f.table != "" {
			c.State += ", for " + f.table + "." + f.column
			if err := s.fill(ctx, conn, &c, f.table, f.column); err != nil {
				return nil, err
			}
		}
		all = append(all, c)
	}
	return all, nil
}
