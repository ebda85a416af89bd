package sqldb

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// connector makes sessions with their settings.
type connector struct {
	driver.Connector
	prepare func(ctx context.Context, c driver.Conn) error // session settings; nil: none
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	panicked := true
	defer func() {
		if panicked && conn != nil {
			_ = conn.Close() // nothing else knows of it
		}
	}()
	if err == nil && c.prepare != nil {
		if err = c.prepare(ctx, conn); err != nil {
			_ = conn.Close() // the first error says more
		}
	}
	panicked = false
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}
