package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// OtherDatabaseError says that a URL differs in more than the password from the one that the store
// was opened with. A store keeps its database for life, because what the engine knows of
// it (its tables, its rule of tags, its cluster) was checked at the start. Another user
// counts as another database: in PostgreSQL the user decides where tables are looked for.
type OtherDatabaseError struct{ Difference string }

func (e *OtherDatabaseError) Error() string {
	return "sqldb: the URL differs in more than the password: " + e.Difference
}

// login is how new connections to one database log in. The stores, registries and
// directories that were opened from one store share it.
type login struct{ current atomic.Pointer[dialer] }

// dialer opens connections with one password, and with what the files of the URL held
// when it was made.
type dialer struct {
	password string
	dial     func(ctx context.Context, cfg Config) (driver.Conn, error)
}

func newLogin(t target) (*login, error) {
	l := new(login)
	if t.dialect.embedded {
		return l, nil
	}
	d, err := t.dialect.dialer(t)
	if err != nil {
		return nil, err
	}
	l.current.Store(d)
	return l, nil
}

// loginConnector makes each connection with the login of that moment.
type loginConnector struct {
	login *login
	cfg   Config
}

// Connect implements driver.Connector.
func (c loginConnector) Connect(ctx context.Context) (driver.Conn, error) {
	return c.login.current.Load().dial(ctx, c.cfg)
}

// Driver implements driver.Connector.
func (c loginConnector) Driver() driver.Driver { return onlyConnector{} }

// onlyConnector is the driver behind a connector, which nothing asks for connections.
type onlyConnector struct{}

// Open implements driver.Driver.
func (onlyConnector) Open(string) (driver.Conn, error) { return nil, errors.ErrUnsupported }

// Login reads the password of url, and the certificates in the files that url names.
// use makes every connection log in with them that is opened from then on, also those of
// Records and Directory of this store, and reports whether the password is another one.
// Open connections stay. The error is an *OtherDatabaseError if url differs from the URL
// of the store in anything but the password; else leaf.ErrBadRequest.
func (s *Store) Login(url string) (use func() (changed bool), err error) {
	t, err := parse(url)
	if err != nil {
		return nil, err
	}
	if what := s.target.differs(t); what != "" {
		return nil, &OtherDatabaseError{what}
	}
	if s.dialect.embedded {
		return func() bool { return false }, nil
	}
	d, err := s.dialect.dialer(t)
	if err != nil {
		return nil, err
	}
	return func() bool { return s.login.current.Swap(d).password != d.password }, nil
}

// Login is that of Store.
func (r *Records) Login(url string) (use func() (changed bool), err error) {
	return r.store.Login(url)
}

// differs returns what distinguishes o from t, beside the password, "" if nothing does.
func (t target) differs(o target) string {
	type part struct{ name, is, was string }
	parts := []part{
		{"database kind", o.dialect.name, t.dialect.name},
		{"host", o.host, t.host},
		{"port", o.port, t.port},
		{"database", o.database, t.database},
		{"file", o.path, t.path},
		{"user", o.user.Username(), t.user.Username()},
	}
	for _, name := range t.dialect.params {
		parts = append(parts, part{"parameter " + name, o.params.Get(name), t.params.Get(name)})
	}
	i := slices.IndexFunc(parts, func(p part) bool { return p.is != p.was })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("%s %q instead of %q", parts[i].name, parts[i].is, parts[i].was)
}
