package app

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/requestid"
)

// accessLog is an Access that writes a line for each request of a protocol while log.access is set.
// While it is not, a request costs one more look at the switch.
type accessLog struct {
	inner    leaf.Access
	protocol string
	log      *slog.Logger
	on       *atomic.Bool
	last     atomic.Pointer[loggedIssuers] // all clients without a name have the same ones

	order     *order // nil: no tag is in strict order
	forwarded bool   // the requests are those that other nodes have forwarded
}

// loggedIssuers are those of one client.
type loggedIssuers struct {
	of      *leaf.Issuers
	client  string
	modes   [2]loggedIssuer
	each    loggedSequencer
	issuers leaf.Issuers // of modes
}

// withAccessLog returns access, with lines in the log.
func (a *App) withAccessLog(access leaf.Access, protocol string) leaf.Access {
	return &accessLog{inner: access, protocol: protocol, log: a.log, on: &a.accessLog, order: a.order}
}

// forwardedLog returns order.forwarded, with lines in the log.
func (a *App) forwardedLog() func(secret string) *leaf.Issuers {
	l := &accessLog{protocol: "gRPC", log: a.log, on: &a.accessLog, forwarded: true}
	logged := l.of(a.order.here, "")
	return func(secret string) *leaf.Issuers {
		if a.order.forwarded(secret) == nil {
			return nil
		}
		return &logged.issuers
	}
}

// Guarded implements leaf.Access.
func (l *accessLog) Guarded() bool { return l.inner.Guarded() }

// Open implements leaf.Access.
func (l *accessLog) Open(c leaf.Credentials) (*leaf.Issuers, error) {
	client := c.Name
	if c.Certificate != "" {
		client = c.Certificate
	}
	issuers, err := l.inner.Open(c)
	if err != nil {
		if !l.on.Load() {
			return nil, err
		}
		l.log.Info("request refused", "protocol", l.protocol, "client", client, "request", c.Request, "code", leaf.ClassOf(err).Code)
		return nil, err
	}
	if last := l.last.Load(); last != nil && last.of == issuers && last.client == client {
		return &last.issuers, nil
	}
	opened := l.of(issuers, client)
	l.last.Store(opened)
	return &opened.issuers, nil
}

// of returns the issuers of a client, with lines in the log.
func (l *accessLog) of(issuers *leaf.Issuers, client string) *loggedIssuers {
	opened := &loggedIssuers{of: issuers, client: client, modes: [2]loggedIssuer{
		{l, issuers.Segment, leaf.SegmentMode, client},
		{l, issuers.Snowflake, leaf.SnowflakeMode, client},
	}}
	opened.each = loggedSequencer{loggedIssuer{l, nil, "sequence", client}, issuers.Sequencer()}
	opened.issuers = leaf.Issuers{Segment: &opened.modes[0], Snowflake: &opened.modes[1], Sequence: &opened.each}
	return opened
}

// loggedIssuer is the Issuer of one client.
type loggedIssuer struct {
	*accessLog
	issuer       leaf.Issuer
	mode, client string
}

// Next implements leaf.Issuer.
func (l *loggedIssuer) Next(ctx context.Context, tag string) (int64, error) {
	if !l.on.Load() {
		return l.issuer.Next(ctx, tag)
	}
	begin := time.Now()
	id, err := l.issuer.Next(ctx, tag)
	l.line(ctx, tag, 1, id, err, begin)
	return id, err
}

// NextN implements leaf.Issuer.
func (l *loggedIssuer) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	if !l.on.Load() {
		return l.issuer.NextN(ctx, tag, n)
	}
	begin := time.Now()
	ranges, err := l.issuer.NextN(ctx, tag, n)
	var first int64
	if len(ranges) > 0 {
		first = ranges[0].Lo
	}
	l.line(ctx, tag, n, first, err, begin)
	return ranges, err
}

// loggedSequencer is the Sequencer of one client.
type loggedSequencer struct {
	loggedIssuer

	sequencer leaf.Sequencer
}

// NextEach implements leaf.Sequencer. The line of a call has the first number or error of its requests.
func (l *loggedSequencer) NextEach(ctx context.Context, sequence string, requests []leaf.SequenceRequest) ([]leaf.SequenceResult, error) {
	if !l.on.Load() {
		return l.sequencer.NextEach(ctx, sequence, requests)
	}
	begin := time.Now()
	results, err := l.sequencer.NextEach(ctx, sequence, requests)
	n, first, said := 0, int64(0), err
	for i, r := range requests {
		n += r.Count
		if i == 0 && err == nil {
			first, said = results[0].Range.Lo, results[0].Err
		}
	}
	l.line(ctx, sequence, n, first, said, begin)
	return results, err
}

// otherNode returns the attribute that says which node has a part in a request for a tag in strict order, beside this one.
func (l *loggedIssuer) otherNode(tag string) []any {
	switch {
	case l.forwarded:
		return []any{"forwarded", true}
	case l.order != nil && l.mode == leaf.SegmentMode:
		if owner, _, strict := l.order.route(tag); strict && owner != l.order.self {
			return []any{"owner", owner}
		}
	}
	return nil
}

func (l *loggedIssuer) line(ctx context.Context, tag string, n int, first int64, err error, begin time.Time) {
	log := l.log.With(l.otherNode(tag)...)
	if err != nil {
		log.Info("request failed", "protocol", l.protocol, "client", l.client, "mode", l.mode, "tag", tag, "count", n, "took", time.Since(begin), "request", requestid.ID(ctx), "code", leaf.ClassOf(err).Code)
		return
	}
	log.Info("request answered", "protocol", l.protocol, "client", l.client, "mode", l.mode, "tag", tag, "count", n, "took", time.Since(begin), "request", requestid.ID(ctx), "first", first)
}
