package sqldb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"
)

// connector bounds the whole of a connection attempt: drivers bound the dial
// only, and a server that accepts but does not greet would keep the caller until
// its own deadline.
type connector struct {
	driver.Connector
	timeout time.Duration
	prepare func(ctx context.Context, c driver.Conn) error // session settings; nil: none
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	conn, err := c.Connector.Connect(bounded)
	panicked := true
	defer func() {
		if panicked && conn != nil {
			_ = conn.Close() // nothing else knows of it
		}
	}()
	if err == nil && c.prepare != nil {
		if err = c.prepare(bounded, conn); err != nil {
			_ = conn.Close() // the first error says more
		}
	}
	panicked = false
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() == nil && bounded.Err() != nil:
		// Not wrapped: the caller's own deadline has not passed.
		return nil, fmt.Errorf("connect: no session within %v: %v", c.timeout, err) //nolint:errorlint // see above
	default:
		return nil, fmt.Errorf("connect: %w", err)
	}
}
