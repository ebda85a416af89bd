package sqldb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

var postgresDialect = dialect{
	name:        "postgres",
	schemes:     []string{"postgres", "postgresql"},
	port:        "5432",
	params:      []string{"host", "sslmode", "sslrootcert", "sslcert", "sslkey", "search_path", "application_name"},
	files:       []string{"sslrootcert", "sslcert", "sslkey"},
	socketParam: "host",
	open:        openPostgres,
	dialer:      dialPostgres,
	numbered:    true,
	quote:       `"`,
	// The level is given because the default of a database may be a stricter one,
	// which answers concurrent loads with serialization failures.
	begin: func(i idle) string {
		return "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE" + i.postgres() + "; SELECT " + postgresSession
	},
	forUpdate:   " FOR UPDATE",
	exact:       postgresExact,
	bytes:       postgresBytes,
	after:       postgresBytes + " > ?",
	epoch:       postgresEpoch,
	now:         "CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS bigint)",
	upsert:      " ON CONFLICT (%s) DO UPDATE SET ",
	proposed:    "excluded.%s",
	greatest:    "GREATEST",
	reserveOnce: reservePostgres,
	settle:      postgresSettle,
	check:       checkPostgres,
	grant:       postgresGrant,
	account:     "SELECT quote_ident(current_user)",
	kindOf:      postgresKind,
}

const (
	postgresBytes = `CAST(biz_tag AS text) COLLATE "C"`
	postgresExact = postgresBytes + " = ?"

	// postgresSession makes the transaction, in which it is evaluated, independent of what other
	// programs have set in the session: behind a pooler of transactions, a session is that of all
	// programs with one user. The warning that a commit is on no standby is sent (see
	// errWarning), and a commit waits as long as the server, the database or the user says.
	postgresSession = "set_config('client_min_messages', 'warning', true) ||" +
		" CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN set_config('synchronous_commit', NULL, true) ELSE '' END"

	// The first and the last schema of some tables, and what is wrong with them and with those that hold their rows, which
	// are the partitions of a table and the tables behind a view: one that is not in the write-ahead log, one of which
	// policies can hide rows from this user, one whose rows are on another server, and a trigger that comes behind the
	// last statement of a transaction.
	postgresTables = "WITH RECURSIVE named AS (SELECT CAST(to_regclass(t) AS oid) AS oid FROM unnest(string_to_array($1, ',')) AS t)," +
		" own AS (SELECT oid FROM named WHERE oid IS NOT NULL UNION SELECT below.oid FROM own, LATERAL (" +
		"SELECT inhrelid AS oid FROM pg_inherits WHERE inhparent = own.oid UNION ALL" +
		" SELECT d.refobjid FROM pg_rewrite r JOIN pg_depend d ON d.objid = r.oid WHERE r.ev_class = own.oid AND r.rulename = '_RETURN'" +
		" AND d.classid = CAST('pg_rewrite' AS regclass) AND d.refclassid = CAST('pg_class' AS regclass)) AS below)" +
		" SELECT COALESCE(MIN(n.nspname) FILTER (WHERE c.oid IN (SELECT oid FROM named)), '')," +
		" COALESCE(MAX(n.nspname) FILTER (WHERE c.oid IN (SELECT oid FROM named)), '')," +
		" COALESCE(MIN(" + postgresName + ") FILTER (WHERE c.relpersistence = 'u'), '')," +
		" COALESCE(MIN(" + postgresName + ") FILTER (WHERE row_security_active(c.oid)), '')," +
		" COALESCE(MIN(" + postgresName + ") FILTER (WHERE c.relkind = 'f'), '')," +
		" COALESCE((SELECT MIN(quote_ident(t.tgname) || ' ON ' || CAST(CAST(t.tgrelid AS regclass) AS text)) FROM pg_trigger t" +
		" WHERE t.tgrelid IN (SELECT oid FROM own) AND t.tginitdeferred AND NOT t.tgisinternal AND t.tgenabled <> 'D'), '')" +
		" FROM own JOIN pg_class c ON c.oid = own.oid JOIN pg_namespace n ON n.oid = c.relnamespace"
	postgresName = "CAST(CAST(c.oid AS regclass) AS text)"

	// A time of "infinity" has no number: it is not known.
	postgresEpoch = "CASE WHEN isfinite(CAST(update_time AS timestamptz))" +
		" THEN CAST(FLOOR(EXTRACT(EPOCH FROM CAST(update_time AS timestamptz))) AS bigint) END"
)

// postgresReserveReading returns a statement that gives req.Length to a row whose step is
// as believed, and the row's own step within the bounds to any other. $1 tag, $2 step, $3
// length, $4 min, $5 max, $6 a random word, which the answer to another statement does not
// repeat. owner is what the statement reads of leaf_meta.
//
// The statement locks the row and reads it. Another one, in the same message, reads it again
// behind the change: a trigger may have written another number, also behind the statement.
func postgresReserveReading(owner string) string {
	const named = ` WHERE biz_tag = $1 AND CAST(biz_tag AS text) COLLATE "C" = $1`
	length := "(CASE WHEN a.step = $2 THEN $3 ELSE LEAST(GREATEST(CAST(a.step AS bigint), $4), $5) END)"
	return "WITH old AS (SELECT biz_tag, max_id FROM leaf_alloc" + named + " FOR UPDATE)" +
		" UPDATE leaf_alloc a SET max_id = a.max_id + " + length + ", update_time = CURRENT_TIMESTAMP" +
		" FROM old WHERE a.biz_tag = old.biz_tag" +
		fmt.Sprintf(" AND a.step BETWEEN 1 AND %d AND a.max_id BETWEEN 0 AND %d - %s", segment.MaxStep, int64(segment.MaxMaxID), length) +
		" RETURNING CASE WHEN " + postgresSession + " <> '' THEN $6 END, a.biz_tag, old.max_id, a.step, " + owner +
		pgThen + "SELECT max_id FROM leaf_alloc" + named
}

// The same statements, without and with a check of the cluster and the tag rule that the database belongs to.
var (
	postgresReserve      = postgresReserveReading(noOwner)
	postgresReserveOwner = postgresReserveReading(ownerValues)
)

// A load reads leaf_meta in one statement, whose view is as old as its beginning, however long it
// waits for its row: the lock of the table waits for it to end. It waits for a row lock, too: a
// load of several statements locks its row before it writes the table, and two that wait for each
// other would end in a deadlock. With a default isolation above
// read committed, the view of one that waits for that lock is older still, and it fails because
// the row has changed.
var postgresSettle = []string{"LOCK TABLE leaf_alloc IN EXCLUSIVE MODE", "UPDATE leaf_alloc SET step = step"}

func openPostgres(_ target, l *login, cfg Config) (pools, error) {
	return openPool(connector{Connector: cfg.below(loginConnector{l, cfg})}, cfg), nil
}

func dialPostgres(t target) (*dialer, error) {
	c, err := pgconn.ParseConfig(t.url().String())
	if err != nil {
		return nil, leaf.BadField("store", t.redacted(), "cannot be used: "+pgReason(err))
	}
	if set := fromElsewhere(t, c.RuntimeParams); set != "" {
		return nil, leaf.BadField("store", t.redacted(), "cannot be used while PGOPTIONS, or the service file of PGSERVICE, sets "+set+" of its sessions: a node with another environment would use other tables, or not wait for its commits. "+
			"Unset the variable, and write what has to count into the URL, or set it for the user with ALTER ROLE ... SET")
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "leaf"
	}
	c.RuntimeParams["client_encoding"] = "UTF8"
	return &dialer{c.Password, func(ctx context.Context, cfg Config) (driver.Conn, error) {
		own := c.Copy()
		own.ConnectTimeout = attemptTimes * cfg.ConnectTimeout
		return connectPostgres(ctx, own)
	}}, nil
}

// fromElsewhere returns what the environment sets of a session and the URL does not, "" if it is nothing that matters: PGOPTIONS
// can name any setting, such as search_path and synchronous_commit, and so can a service file.
func fromElsewhere(t target, params map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if !t.params.Has(name) && name != "application_name" && name != "timezone" {
			return name
		}
	}
	return ""
}

// pgReason returns the innermost text of a configuration error: the outer ones
// repeat the URL.
func pgReason(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// reservePostgres is one statement that commits by itself. Its row arrives before
// its commit: queryRow reads until the server is ready for the next query, and so
// sees a commit that fails.
func reservePostgres(ctx context.Context, s *Store, req segment.Request) (segment.Reservation, bool, error) {
	var lo, hi, step int64
	var echo, name string
	word := rand.Text()
	statement := postgresReserveOwner
	if s.identity.isBlind() {
		statement = postgresReserve
	}
	var found owner
	args := []any{req.Tag, req.Step, req.Length, req.Min, req.Max, word}
	ok, err := queryBoth(ctx, s.write, statement, args, append([]any{&echo, &name, &lo, &step}, found.dest()...), []any{&hi})
	switch kind := s.dialect.kindOf(err); {
	case errors.Is(err, errUnreadable):
		return segment.Reservation{}, false, fmt.Errorf("%w: %w", leaf.ErrInvalidRow, err)
	case err != nil && (kind == kindBadText || kind == kindSerialize || kind == kindUnsupported):
		return segment.Reservation{}, false, nil // nothing was written: the slower way decides
	case err != nil || !ok:
		return segment.Reservation{}, false, err
	case echo != word || name != req.Tag:
		return segment.Reservation{}, false, errAnswer
	}
	if err := s.identity.checkOwner(found); err != nil {
		return segment.Reservation{}, false, err
	}
	length := req.LengthFor(step)
	if hi-lo != length {
		return segment.Reservation{}, false, errMoved(lo, hi, length)
	}
	res, err := rangeBelow(hi, length, step)
	return res, true, err
}

// queryBoth is queryRow for two statements with pgThen. ok is false without a row of the first one, or of the second one.
func queryBoth(ctx context.Context, q querier, query string, args, first, second []any) (ok bool, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	defer func() {
		err = errors.Join(err, rows.Close())
		ok = ok && err == nil
	}()
	if ok, err = packetAnswer(rows, first...); err != nil || !ok {
		return false, err
	}
	return packetAnswer(rows, second...)
}

// checkPostgres begins and ends a transaction, which a pooler of statements refuses. It refuses
// tables of which a crash leaves no row, or of which this user may not see each row, those of another
// server, of which it cannot tell that, and a trigger that can change a number when the transaction ends,
// behind all that a load reads.
//
// Tables of one name in several schemas make it refuse tables that it finds in different ones:
// a user with another search_path finds another leaf_meta beside the same leaf_alloc.
func checkPostgres(ctx context.Context, s *Store, tables ...string) error {
	return s.transact(ctx, func(conn *sql.Conn) error {
		var first, last, unlogged, hidden, foreign, deferred string
		if _, err := queryRow(ctx, conn, postgresTables, []any{strings.Join(tables, ",")}, []any{&first, &last, &unlogged, &hidden, &foreign, &deferred}); err != nil {
			return fmt.Errorf("look at the tables %s: %w", strings.Join(tables, ", "), err)
		}
		switch {
		case unlogged != "":
			return fmt.Errorf("%w: %s is UNLOGGED, so a crash, or a failover, empties it; run: ALTER TABLE %[2]s SET LOGGED", segment.ErrSchema, unlogged)
		case hidden != "":
			return fmt.Errorf("%w: row-level security of %s can hide rows from this user, and with them numbers that are in use; run: ALTER TABLE %[2]s DISABLE ROW LEVEL SECURITY, "+
				"or let the user see all rows: ALTER ROLE ... BYPASSRLS", segment.ErrDenied, hidden)
		case foreign != "":
			return fmt.Errorf("%w: %s is a foreign table, so "+rowsElsewhere, segment.ErrSchema, foreign)
		case deferred != "":
			return fmt.Errorf("%w: the trigger %s is INITIALLY DEFERRED, so it can change a number after a load has read it; drop it, or make it INITIALLY IMMEDIATE", segment.ErrSchema, deferred)
		case first != last:
			return fmt.Errorf("%w: by this user's search_path, the tables %s are in several schemas, %q and %q; name the right one in the URL: search_path=SCHEMA, and drop or move what is in the other one",
				segment.ErrSchema, strings.Join(tables, ", "), first, last)
		}
		return nil
	})
}

func postgresKind(err error) kind {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return kindOther
	}
	switch e.Code {
	case "42P01", "42703", "3F000": // undefined table, column, schema
		return kindNoTable
	case "3D000": // undefined database
		return kindNoDatabase
	case "28P01", "28000": // wrong password, no such user or not from here
		return kindLogin
	case "42501": // no privilege
		if _, connecting := errors.AsType[*pgconn.ConnectError](err); connecting {
			return kindLogin
		}
		return kindDenied
	case "08P01": // protocol violation, with which pgbouncer answers to BEGIN
		if strings.Contains(e.Message, "statement pooling") {
			return kindPooling
		}
	case "23505", "42P07", "42710": // unique violation, duplicate table, duplicate object
		return kindDuplicate
	case "22003": // numeric value out of range
		return kindTooBig
	case "22P05", "22021", "22001": // untranslatable character, invalid for the encoding, too long
		return kindBadText
	case "25006": // read-only transaction, as on a standby
		return kindReadOnly
	case "40001", "40P01": // serialization failure, deadlock
		return kindSerialize
	case "0A000": // feature not supported, such as WITH on a table with a rule that adds a statement
		return kindUnsupported
	}
	return kindOther
}
