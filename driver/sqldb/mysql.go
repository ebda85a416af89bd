package sqldb

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// mysqlDialect is MySQL 5.7 and 8 and MariaDB; statements keep to what the three
// share.
var mysqlDialect = dialect{
	name:        "mysql",
	schemes:     []string{"mysql", "mariadb"},
	port:        "3306",
	params:      []string{"socket", "tls", "tls-ca"},
	files:       []string{"tls-ca"},
	socketParam: "socket",
	open:        openMySQL,
	dialer:      dialMySQL,
	quote:       "`",
	begin:       func(idle) string { return "START TRANSACTION" },
	forUpdate:   " FOR UPDATE",
	share:       " LOCK IN SHARE MODE", // MariaDB and MySQL 5.7 have no FOR SHARE
	exact:       mysqlExact,
	bytes:       mysqlBytes,
	after:       mysqlBytes + " > CAST(? AS BINARY)",
	epoch:       "CAST(UNIX_TIMESTAMP(update_time) AS SIGNED)",
	now:         "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)", // without the session's time zone
	upsert:      " ON DUPLICATE KEY UPDATE ",
	proposed:    "VALUES(%s)",
	greatest:    "GREATEST",
	reserveOnce: reserveMySQL,
	settle:      []string{mysqlTouch, mysqlTouch},
	check:       checkMySQL,
	grant:       mysqlGrant,
	account:     mysqlAccount,
	kindOf:      mysqlKind,
}

const (
	// Binary strings are compared byte by byte and without padding; the conversion
	// serves tables in another character set than the connection's.
	mysqlBytes = "CAST(CONVERT(biz_tag USING utf8mb4) AS BINARY)"
	mysqlExact = mysqlBytes + " = CAST(? AS BINARY)"

	// mysqlTouch, done twice, leaves each row as it was. In a group, where another member
	// knows nothing of locks, a load that meets a changed row is rolled back.
	mysqlTouch = "UPDATE leaf_alloc SET max_id = max_id ^ 1 WHERE max_id >= 0"

	// One of some tables (%s) without transactions, or with its rows on another server. There a row that is read FOR UPDATE
	// stays unlocked, and an UPDATE of a row that has changed since counts as done.
	mysqlNotTransactional = "SELECT t.TABLE_NAME, e.ENGINE FROM information_schema.TABLES t JOIN information_schema.ENGINES e" +
		" ON e.ENGINE = t.ENGINE WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN (%s) AND (e.TRANSACTIONS = 'NO' OR e.ENGINE = '" + mysqlFederated + "') LIMIT 1"
	mysqlFederated = "FEDERATED"

	// mysqlIsolation makes a plain read show committed rows only, whatever the
	// server's default. It is a statement of its own because the variable has two
	// names, and it is this level because a binlog by statement refuses lower ones.
	mysqlIsolation = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
)

// mysqlSession makes every connection what the statements rely on, whatever the
// server's defaults. Strict mode: a max_id that does not fit its column is an
// error; without it the server would store another number than it reports. The
// fixed sql_mode and character set also make it safe that the driver writes
// parameters into the text of a statement, which saves the round trip of a
// prepare. A list of rows is whole, whatever sql_select_limit a server has for its users, and
// sql_safe_updates does not refuse mysqlTouch. A lock wait ends on the server soon after its client gave up, and so
// does the transaction of a client that is frozen, see idle.
func mysqlSession(i idle) string {
	return "SET NAMES utf8mb4, @@session.autocommit = 1, @@session.completion_type = 0," +
		" @@session.sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', @@session.innodb_lock_wait_timeout = 10," +
		" @@session.sql_select_limit = 18446744073709551615, @@session.sql_safe_updates = 0" +
		i.mariaDB() + i.mysql()
}

func openMySQL(_ target, l *login, cfg Config) (pools, error) {
	base := loginConnector{l, cfg}
	galera := new(atomic.Bool)
	p := openPool(connector{Connector: cfg.below(base), prepare: func(ctx context.Context, c driver.Conn) error {
		if err := prepareMySQL(ctx, c, cfg.idle); err != nil {
			return err
		}
		return enterGroup(ctx, c, galera)
	}}, cfg)
	p.galera = galera
	p.write.SetConnMaxIdleTime(cfg.idle.mysqlPool)
	return p, nil
}

func dialMySQL(t target) (*dialer, error) {
	c := mysql.NewConfig()
	c.User = t.user.Username()
	c.Passwd, _ = t.user.Password()
	c.Net, c.Addr = "tcp", net.JoinHostPort(t.host, t.port)
	if socket := t.params.Get("socket"); socket != "" {
		c.Net, c.Addr = "unix", socket
	}
	c.DBName = t.database
	c.InterpolateParams = true
	c.MultiStatements = true // see mysqlPacket
	var err error
	if c.TLS, c.TLSConfig, err = mysqlTLS(t); err != nil {
		return nil, err
	}
	if _, err := mysql.NewConnector(c); err != nil {
		return nil, leaf.BadField("store", t.redacted(), err.Error())
	}
	return &dialer{c.Passwd, func(ctx context.Context, cfg Config) (driver.Conn, error) {
		own := c.Clone()
		own.Timeout, own.Logger = attemptTimes*cfg.ConnectTimeout, mysqlLog{cfg.Logger}
		connector, err := mysql.NewConnector(own)
		if err != nil {
			return nil, err
		}
		return connector.Connect(ctx)
	}}, nil
}

func mysqlTLS(t target) (*tls.Config, string, error) {
	mode, file := t.params.Get("tls"), t.params.Get("tls-ca")
	switch mode {
	case "", "false", "true", "skip-verify", "preferred":
	default:
		return nil, "", leaf.BadField("store parameter tls", mode, "must be true, false, skip-verify or preferred")
	}
	if file == "" {
		return nil, mode, nil
	}
	if mode != "" && mode != "true" {
		return nil, "", leaf.BadField("store parameter tls-ca", file, "needs tls=true")
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, "", leaf.BadField("store parameter tls-ca", file, err.Error())
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, "", leaf.BadField("store parameter tls-ca", file, "must hold certificates in PEM form")
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, "", nil
}

func prepareMySQL(ctx context.Context, c driver.Conn, i idle) error {
	for _, statement := range []string{mysqlSession(i), mysqlIsolation} {
		if err := execOn(ctx, c, statement); err != nil {
			return err
		}
	}
	return nil
}

func execOn(ctx context.Context, c driver.Conn, statement string) error {
	_, err := c.(driver.ExecerContext).ExecContext(ctx, statement, nil)
	return err
}

// checkMySQL refuses a table whose statements are not transactions of this server.
func checkMySQL(ctx context.Context, s *Store, tables ...string) error {
	var table, engine string
	found, err := queryRow(ctx, s.read, fmt.Sprintf(mysqlNotTransactional, "'"+strings.Join(tables, "', '")+"'"), nil, []any{&table, &engine})
	switch {
	case err != nil:
		return fmt.Errorf("read engine of %s: %w", strings.Join(tables, ", "), err)
	case engine == mysqlFederated: // made InnoDB it would be a copy, beside the nodes that use the rows there
		return fmt.Errorf("%w: %s has ENGINE=%s, so "+rowsElsewhere, segment.ErrSchema, table, engine)
	case found:
		return fmt.Errorf("%w: %s has ENGINE=%s, which loses committed rows in a crash; run: ALTER TABLE %[2]s ENGINE=InnoDB", segment.ErrSchema, table, engine)
	}
	return nil
}

// mysqlEngineDeadlock is HA_ERR_LOCK_DEADLOCK, which the text of error 1180 names by its number.
const mysqlEngineDeadlock = "149"

func mysqlKind(err error) kind {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return kindOther
	}
	switch e.Number {
	case 1146, // no such table
		1054: // unknown column
		return kindNoTable
	case 1049: // unknown database
		return kindNoDatabase
	case 1045, 1698, 1044, 1130, 1820, 1862, 3118, 4151: // wrong password, no right to the database, wrong host, password expired, account locked
		return kindLogin
	case 1142: // no privilege on the table, which is also the answer to a SELECT from one that does not exist
		if strings.HasPrefix(e.Message, "SELECT command") {
			return kindHidden
		}
		return kindDenied
	case 1143, 1227: // no privilege on the column, no privilege of an administrator
		return kindDenied
	case 1062, 1586, 1050: // duplicate key, table exists
		return kindDuplicate
	case 1264, 1690: // out of range for the column, or for any integer
		return kindTooBig
	case 1366, 1406, 1300, 3854, 3988, // character that the column cannot hold, data too long
		1267: // the same in a comparison: illegal mix of collations
		return kindBadText
	case 1290, 1792, 1836: // read_only, read-only transaction, read-only mode
		return kindReadOnly
	case 1047, // a member of a Galera group without a quorum
		3796: // one that Group Replication has expelled, where readings wait for the group
		return kindCutOff
	case 1180: // the engine refused the COMMIT; in Group Replication because another member's transaction came first
		if strings.Contains(e.Message, mysqlEngineDeadlock) {
			return kindSerialize
		}
	case 1213, // deadlock
		3101, // the same in Group Replication: another member changed the row first
		1020: // the row changed since the transaction began, by MariaDB from 11.6 on (innodb_snapshot_isolation)
		return kindSerialize
	}
	return kindOther
}

// mysqlLog passes on what the driver would print.
type mysqlLog struct{ logger *slog.Logger }

func (l mysqlLog) Print(v ...any) {
	l.logger.Debug("message of the MySQL driver", "text", fmt.Sprint(v...))
}
