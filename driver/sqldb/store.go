package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Config tunes a store. The zero value is usable.
type Config struct {
	// ConnectTimeout is how long a call waits for a connection, from the first packet until
	// the session can be used. 0: 250 ms, which keeps the time from the database's
	// return to the first range below a second. A session that comes later, within ten times as
	// long, serves the next call, except with Brief.
	ConnectTimeout time.Duration

	// MaxConns bounds the connections to a server, but for one that comes late. 0: 20. It must exceed the
	// number of loads that the engine runs at once: a load whose row is locked
	// keeps its connection until its deadline. SQLite has one writer and four
	// readers, whatever MaxConns is.
	MaxConns int

	// Brief closes each connection to a server after its call, for a program that asks
	// rarely: a hundred of them that kept theirs would use up what MySQL allows.
	Brief bool

	// Lease is how long an announced process is seen by its peers in the registry of
	// worker IDs. 0: 15 s. Below the interval of the announcements, running processes
	// would disappear.
	Lease time.Duration

	// Several says that a rule divides the tags of the node, as over several databases, for texts: a command that makes the tables
	// must know the rule and all databases.
	Several bool

	// Logger receives what the database drivers want to say, at debug level, and what
	// is left out of a list of nodes. nil: discarded. Errors are returned, not logged.
	Logger *slog.Logger

	// idle bounds what a silent client may keep. The zero value: idleRows.
	idle idle

	// faults stands between this package and the drivers, in tests. nil: nothing does.
	faults func(driver.Connector) driver.Connector
}

// maxIdle returns how many connections are kept for later calls.
func (c Config) maxIdle() int {
	if c.Brief {
		return -1 // none
	}
	return c.MaxConns
}

func (c Config) withDefaults() (Config, error) {
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 250 * time.Millisecond
	}
	if c.MaxConns == 0 {
		c.MaxConns = 20
	}
	if c.Lease == 0 {
		c.Lease = 15 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.idle == (idle{}) {
		c.idle = idleRows
	}
	switch {
	case c.Lease < time.Millisecond:
		return c, leaf.BadField("lease", c.Lease, "must be 1ms or more")
	case c.ConnectTimeout < 0:
		return c, leaf.BadField("connect timeout", c.ConnectTimeout, "must be above 0")
	case c.MaxConns < 0:
		return c, leaf.BadField("max conns", c.MaxConns, "must be 1 or more")
	}
	return c, nil
}

// pools are the connections of a store. For a server both are the same.
type pools struct {
	write, read *sql.DB
	file        *sqliteWatch // nil: on a server
	galera      *atomic.Bool // see enterGroup; nil: not MySQL
}

// Store is one database. It implements segment.Store and segment.Catalog. All
// methods are safe for concurrent use.
type Store struct {
	pools
	dialect *dialect
	target  target
	login   *login
	cfg     Config
	sql     *statements
	board   *boardStatements
	layout  atomic.Pointer[layout]        // nil: not known
	made    atomic.Bool                   // this process made the file of an embedded database
	making  atomic.Pointer[chan struct{}] // closed when this process has made the tables there; nil: it makes none

	hadOptions, hadClients atomic.Bool // a layout had leaf_tag_option, leaf_client_option

	identity *identity // of the registries in the same database, too

	born   time.Time
	lastOK atomic.Int64 // when a statement last succeeded, in ns since born

	boardDue atomic.Int64 // when sweepBoard deletes rows next, in ns since born
}

var (
	_ segment.Store   = (*Store)(nil)
	_ segment.Catalog = (*Store)(nil)
)

// Open parses a store URL. It does not connect: an error is leaf.ErrBadRequest
// and names the part of the URL that is wrong.
//
//	mysql://user:password@host:3306/database?tls=true    also mariadb://; ?socket=/path instead of a host
//	postgres://user:password@host:5432/database          also postgresql://; ?host=/folder of the socket
//	sqlite:path                                          also sqlite:///path
//
// What a PostgreSQL URL leaves out is taken from libpq's environment variables
// and password file. Variables that set something of a session, such as PGOPTIONS, are an error.
func Open(url string, cfg Config) (*Store, error) {
	t, err := parse(url)
	if err != nil {
		return nil, err
	}
	l, err := newLogin(t)
	if err != nil {
		return nil, err
	}
	return openTarget(t, l, cfg)
}

func openTarget(t target, l *login, cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	p, err := t.dialect.open(t, l, cfg)
	if err != nil {
		return nil, err
	}
	return &Store{pools: p, dialect: t.dialect, target: t, login: l, cfg: cfg, sql: &t.dialect.sql, board: &t.dialect.board, identity: new(identity), born: time.Now()}, nil
}

// below returns a driver's connector as the rest of the package is to see it.
func (c Config) below(base driver.Connector) driver.Connector {
	if c.faults != nil {
		base = c.faults(base)
	}
	return base
}

// openPool returns the pool of a server.
func openPool(c connector, cfg Config) pools {
	db := sql.OpenDB(withLatecomers(track(cfg.Logger)(c), cfg.ConnectTimeout, !cfg.Brief))
	db.SetMaxOpenConns(cfg.MaxConns)
	db.SetMaxIdleConns(cfg.maxIdle())
	return pools{write: db, read: db}
}

// Redacted returns the store's URL with xxxxx for the password.
func (s *Store) Redacted() string { return s.target.redacted() }

// Dialect returns "mysql", "postgres" or "sqlite", as Schema takes it.
func (s *Store) Dialect() string { return s.dialect.name }

// Close closes the connections. Calls that are under way end with an error. It
// may be repeated. The error is that of closing a file; saying goodbye to a server
// that is gone is none.
func (s *Store) Close() error {
	err := s.write.Close()
	if !s.dialect.embedded {
		return nil
	}
	return errors.Join(s.read.Close(), err)
}

// done finishes a call that began at start: it says in err which step failed,
// and keeps the pool clean. It is meant to be deferred.
func (s *Store) done(ctx context.Context, start time.Time, err *error, step string, args ...any) {
	s.finish(ctx, start, err, s.explain, step, args...)
}

// finish is done with the sentinels that explain gives to what the database said. An error
// names that of ctx where that is why the call ended: drivers then often report no more than a
// closed connection.
func (s *Store) finish(ctx context.Context, start time.Time, err *error, explain func(error) error, step string, args ...any) {
	cause := *err
	if cause == nil {
		s.lastOK.Store(int64(time.Since(s.born)))
		return
	}
	if ended := ctx.Err(); ended != nil && !errors.Is(cause, ended) {
		cause = fmt.Errorf("%w (%w)", ended, cause)
	} else if refused := s.refused(ctx, cause); refused != nil {
		cause = refused
	} else {
		cause = explain(cause)
	}
	*err = fmt.Errorf("%s: %w", fmt.Sprintf(step, args...), cause)
	s.freshen(start, *err)
}

// freshen empties the pool if err, of a call that began at start, tells that its
// connections are of no use any more.
func (s *Store) freshen(start time.Time, err error) {
	if s.dialect.embedded {
		return // its connections are dropped one by one, see tracked
	}
	// A server that went silent leaves a pool full of dead connections, each of
	// which would cost a deadline; one that became a replica leaves a pool full of
	// connections that cannot write, one that is cut off from its group a pool full of connections to
	// that member, and one that lacked a right, of sessions that never
	// get it on MySQL. A row that another session locks also ends in a deadline, but then
	// other statements succeed.
	silent := errors.Is(err, context.DeadlineExceeded) && s.lastOK.Load() < int64(start.Sub(s.born))
	if kind := s.dialect.kindOf(err); silent || kind == kindReadOnly || kind == kindCutOff || kind == kindDenied {
		s.write.SetMaxIdleConns(0)
		s.write.SetMaxIdleConns(s.cfg.maxIdle())
	}
}
