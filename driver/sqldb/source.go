package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/takeover"
	"github.com/leaf-idgen/leaf/segment"
)

// sourceKinds are the services whose counters can be read.
var sourceKinds = map[string]func(s *Source, ctx context.Context, conn *sql.Conn, names []string) ([]takeover.Counter, error){
	"tinyid":        (*Source).tinyid,
	"cosid":         (*Source).cosid,
	"fork":          (*Source).fork,
	"autoincrement": (*Source).autoincrement,
}

// Source is the database of another ID service. It implements takeover.Source. It only reads,
// and needs the right to read only.
type Source struct {
	store *Store
	kind  string
}

var _ takeover.Source = (*Source)(nil)

// OpenSource opens the database of another ID service: tinyid, cosid, fork (the table
// leaf_alloc in another database), or autoincrement (AUTO_INCREMENT columns and sequences). It
// does not connect. Error: leaf.ErrBadRequest.
func OpenSource(kind, url string, cfg Config) (*Source, error) {
	if sourceKinds[kind] == nil {
		return nil, leaf.BadField("kind", kind, "must be tinyid, cosid, fork or autoincrement")
	}
	s, err := Open(url, cfg)
	if err != nil {
		return nil, err
	}
	if s.dialect.embedded {
		return nil, errors.Join(leaf.BadField("from", s.Redacted(), "must be a database of MySQL, MariaDB or PostgreSQL"), s.Close())
	}
	return &Source{s, kind}, nil
}

// Close closes the connections.
func (s *Source) Close() error { return s.store.Close() }

// Counters implements takeover.Source. Errors: leaf.ErrConflict on a server that may lag behind
// another one; leaf.ErrBadRequest if the database is not that of the service; any other means
// that the database does not answer.
func (s *Source) Counters(ctx context.Context, names ...string) (all []takeover.Counter, err error) {
	defer s.store.finish(ctx, time.Now(), &err, s.explain, "read the numbers of %s in %s", s.kind, s.store.Redacted())
	defer func() { err = s.refused(err) }()
	conn, err := s.store.read.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // what was read counts
	all, err = sourceKinds[s.kind](s, ctx, conn, names)
	if err != nil {
		return nil, err
	}
	unchecked, err := s.unchecked(ctx, conn)
	if err != nil {
		return nil, err
	}
	for i := range all {
		c := &all[i]
		c.From = s.store.Redacted()
		if unchecked != "" {
			c.Unchecked, c.Stop = unchecked, nil
		}
		if c.Problem == "" && (c.End < 0 || c.End > segment.MaxMaxID || c.Filled > segment.MaxMaxID) {
			c.Problem = fmt.Sprintf("its numbers reach outside of 0 to %d: %s", int64(segment.MaxMaxID), c.State)
		}
	}
	return all, nil
}

// role is a column that says whether the server which answers is a replica. Each statement asks for
// it, because a proxy may send each one to another server.
func (s *Source) role() string {
	if s.postgres() {
		return "pg_is_in_recovery()"
	}
	return "@@global.read_only NOT IN ('0', 'OFF')"
}

// each calls each with the rows of SELECT columns, on a server that is no replica: its counters lag
// behind those that the service moves.
func (s *Source) each(ctx context.Context, conn *sql.Conn, columns string, dest []any, each func() error) error {
	var replica bool
	return eachRow(ctx, conn, "SELECT "+s.role()+", "+columns, nil, func(rows *sql.Rows) error {
		if err := rows.Scan(append([]any{&replica}, dest...)...); err != nil {
			return err
		}
		if replica {
			return errReplica
		}
		return each()
	})
}

var errReplica = fmt.Errorf("%w: the server accepts no writes, as a replica does, and its counters may be old: give the URL of the server to which the other service writes", leaf.ErrConflict)

func (s *Source) postgres() bool { return s.store.dialect.name == postgresDialect.name }

// refused says what to do where the server has no such database, or does not let the user read. A store's texts say to make
// Leaf's tables, and to give the right to write.
func (s *Source) refused(err error) error {
	if err == nil {
		return nil
	}
	switch s.store.dialect.kindOf(err) {
	case kindNoDatabase:
		return fmt.Errorf("%w: the server has no database %q: correct the name in the URL (%s)", leaf.ErrBadRequest, s.store.target.database, err.Error())
	case kindDenied:
		return fmt.Errorf("%w: give user %q the right to SELECT there (%s)", segment.ErrDenied, s.store.target.user.Username(), err.Error())
	}
	return err
}

func (s *Source) explain(err error) error {
	if s.store.dialect.kindOf(err).missing() {
		return fmt.Errorf("%w: this is not the database of %s, or the user may not read it: %w", leaf.ErrBadRequest, s.kind, err)
	}
	return err
}

// rows reads a table whose rows are counters: the name, and numbers that may be unreadable.
func (s *Source) rows(ctx context.Context, conn *sql.Conn, query string, names []string, columns int, counter func(name string, n []readable) takeover.Counter) (all []takeover.Counter, err error) {
	var name string
	values := make([]readable, columns)
	dest := []any{&name}
	for i := range values {
		dest = append(dest, &values[i])
	}
	err = s.each(ctx, conn, query, dest, func() error {
		if len(names) > 0 && !slices.Contains(names, name) {
			return nil
		}
		c := takeover.Counter{Name: name}
		for _, v := range values {
			if v.err != nil {
				c.Problem = fmt.Sprintf("the row %q cannot be read: %v", name, v.err)
			}
		}
		if c.Problem == "" {
			c = counter(name, values)
		}
		all = append(all, c)
		return nil
	})
	return all, err
}

// tinyid reads didi/tinyid: a range is what lies above the old max_id, up to and including the
// new one (com.xiaoju.uemc.tinyid.base.entity.SegmentId). A server or a client that has loaded a
// range hands out nothing above its max_id.
func (s *Source) tinyid(ctx context.Context, conn *sql.Conn, names []string) ([]takeover.Counter, error) {
	return s.rows(ctx, conn, "biz_type, max_id, step, delta, remainder FROM tiny_id_info ORDER BY biz_type", names, 4,
		func(name string, n []readable) takeover.Counter {
			c := takeover.Counter{
				Name: name, End: after(n[0].Int64), Step: max(0, n[1].Int64), Modulus: n[2].Int64, Residue: n[3].Int64,
				State: fmt.Sprintf("biz_type %q, max_id %d, step %d, delta %d, remainder %d", name, n[0].Int64, n[1].Int64, n[2].Int64, n[3].Int64),
				Stop:  s.stopRow("tiny_id_info", "biz_type", name, "max_id"),
			}
			if c.Modulus < 1 || c.Residue < 0 || c.Residue >= c.Modulus {
				c.Problem = fmt.Sprintf("the row %q has delta %d and remainder %d, with which tinyid counts in no fixed order", name, c.Modulus, c.Residue)
			}
			return c
		})
}

// cosid reads Ahoo-Wang/CosId: last_max_id is the last number of the last range
// (me.ahoo.cosid.segment.DefaultIdSegment), however many ranges its chains hold.
func (s *Source) cosid(ctx context.Context, conn *sql.Conn, names []string) ([]takeover.Counter, error) {
	return s.rows(ctx, conn, "name, last_max_id FROM cosid ORDER BY name", names, 1,
		func(name string, n []readable) takeover.Counter {
			return takeover.Counter{
				Name: name, End: after(n[0].Int64),
				State: fmt.Sprintf("name %q, last_max_id %d", name, n[0].Int64),
				Stop:  s.stopRow("cosid", "name", name, "last_max_id"),
			}
		})
}

// fork reads leaf_alloc as the Java server and its forks use it: max_id is the first number that
// no range has.
func (s *Source) fork(ctx context.Context, conn *sql.Conn, names []string) ([]takeover.Counter, error) {
	var cluster string
	switch ours, err := queryRow(ctx, conn, s.store.sql.cluster, nil, []any{&cluster}); {
	case ours:
		return nil, fmt.Errorf("%w: nodes of Leaf for Go take ranges from this database, so there is nothing to take over: they count on in the rows that the Java server uses", leaf.ErrConflict)
	case err != nil && !s.store.dialect.kindOf(err).missing():
		return nil, err
	}
	return s.rows(ctx, conn, "biz_tag, max_id, step FROM leaf_alloc ORDER BY biz_tag", names, 2,
		func(name string, n []readable) takeover.Counter {
			stop := s.stopRow("leaf_alloc", "biz_tag", name, "max_id")
			return takeover.Counter{
				Name: name, End: n[0].Int64, Step: max(0, n[1].Int64),
				State: fmt.Sprintf("biz_tag %q, max_id %d, step %d", name, n[0].Int64, n[1].Int64),
				Stop:  func(first int64) string { return stop(first + 1) },
			}
		})
}

// after returns the number above n, -1 if there is none.
func after(n int64) int64 {
	if n < 0 || n >= segment.MaxMaxID {
		return -1
	}
	return n + 1
}

// unchecked returns the version of the server if the statements of stopRow are of no use there:
// it takes a CHECK, and ignores it.
func (s *Source) unchecked(ctx context.Context, conn *sql.Conn) (version string, err error) {
	if s.postgres() || s.kind == "autoincrement" {
		return "", nil
	}
	if _, err := queryRow(ctx, conn, "SELECT VERSION()", nil, []any{&version}); err != nil {
		return "", err
	}
	if checksRows(version) {
		return "", nil
	}
	return version, nil
}

// checksRows reports whether a server of this version of MySQL, MariaDB or TiDB, which has a
// version of MySQL's, obeys CHECK.
func checksRows(version string) bool {
	since := []int{8, 0, 16}
	if strings.Contains(version, "MariaDB") {
		since = []int{10, 2, 1}
	}
	v := make([]int, len(since))
	_, err := fmt.Sscanf(strings.TrimPrefix(version, "5.5.5-"), "%d.%d.%d", &v[0], &v[1], &v[2])
	return err == nil && slices.Compare(v, since) >= 0
}

// stopRow returns the statement that lets the database refuse a row whose column would reach a
// number.
func (s *Source) stopRow(table, key, name, column string) func(first int64) string {
	return func(first int64) string {
		return fmt.Sprintf("ALTER TABLE %s ADD CHECK (%s OR %s < %d)", table, s.differs(key, name), column, first)
	}
}

// differs returns the condition that a column is not a text. It means the same in every session: the
// operator's may have another character set, or settings with which a backslash is another text.
func (s *Source) differs(column, text string) string {
	ambiguous := func(r rune) bool { return r >= utf8.RuneSelf || r == '\\' }
	switch {
	case !strings.ContainsFunc(text, ambiguous):
	case s.postgres(): // blanks at the end are not part of a text of type char
		return fmt.Sprintf("encode(convert_to(rtrim(%s), 'UTF8'), 'hex') <> '%x'", column, strings.TrimRight(text, " "))
	default:
		return fmt.Sprintf("HEX(CONVERT(%s USING utf8mb4)) <> '%X'", column, text)
	}
	return fmt.Sprintf("%s <> '%s'", column, strings.ReplaceAll(text, "'", "''"))
}
