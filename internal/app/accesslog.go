package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/requestid"
)

// accessLog is an Access that writes a line for each request of a protocol. Without log.access
// the servers have the Access behind it, so that the switch costs nothing while it is off.
type accessLog struct {
	inner    leaf.Access
	protocol string
	log      *slog.Logger
}

// withAccessLog returns access, or one that writes lines.
func (a *App) withAccessLog(access leaf.Access, protocol string) leaf.Access {
	if !a.cfg.Log.Access {
		return access
	}
	return accessLog{access, protocol, a.log}
}

// Guarded implements leaf.Access.
func (l accessLog) Guarded() bool { return l.inner.Guarded() }

// Open implements leaf.Access.
func (l accessLog) Open(c leaf.Credentials) (*leaf.Issuers, error) {
	client := c.Name
	if c.Certificate != "" {
		client = c.Certificate
	}
	issuers, err := l.inner.Open(c)
	if err != nil {
		l.log.Info("request refused", "protocol", l.protocol, "client", client, "request", c.Request, "code", leaf.ClassOf(err).Code)
		return nil, err
	}
	return &leaf.Issuers{
		Segment:   loggedIssuer{l, issuers.Segment, leaf.SegmentMode, client},
		Snowflake: loggedIssuer{l, issuers.Snowflake, leaf.SnowflakeMode, client},
	}, nil
}

// loggedIssuer is the Issuer of one client.
type loggedIssuer struct {
	accessLog
	issuer       leaf.Issuer
	mode, client string
}

// Next implements leaf.Issuer.
func (l loggedIssuer) Next(ctx context.Context, tag string) (int64, error) {
	begin := time.Now()
	id, err := l.issuer.Next(ctx, tag)
	l.line(ctx, tag, 1, id, err, begin)
	return id, err
}

// NextN implements leaf.Issuer.
func (l loggedIssuer) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	begin := time.Now()
	ranges, err := l.issuer.NextN(ctx, tag, n)
	var first int64
	if len(ranges) > 0 {
		first = ranges[0].Lo
	}
	l.line(ctx, tag, n, first, err, begin)
	return ranges, err
}

func (l loggedIssuer) line(ctx context.Context, tag string, n int, first int64, err error, begin time.Time) {
	if err != nil {
		l.log.Info("request failed", "protocol", l.protocol, "client", l.client, "mode", l.mode, "tag", tag, "count", n, "took", time.Since(begin), "request", requestid.ID(ctx), "code", leaf.ClassOf(err).Code)
		return
	}
	l.log.Info("request answered", "protocol", l.protocol, "client", l.client, "mode", l.mode, "tag", tag, "count", n, "took", time.Since(begin), "request", requestid.ID(ctx), "first", first)
}
