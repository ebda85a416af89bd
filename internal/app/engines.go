package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/alarm"
	"github.com/leaf-idgen/leaf/segment"
)

// openEngines makes what issues IDs, and what it reports to.
func (a *App) openEngines(listening net.Addr) (err error) {
	a.alarms, err = alarm.New(alarm.Config{
		Node:    nodeName(listening),
		Webhook: alarm.Webhook{URL: a.cfg.Alarm.Webhook, Timeout: a.cfg.Alarm.Timeout},
		Logger:  a.log,
	})
	if err != nil {
		return err
	}
	a.closers.add(a.withDeadline(a.alarms.Close))
	first := false
	if a.dbs.embedded {
		missing := a.dbs.stores[0].MissingFile()
		if !a.cfg.Segment.Enable { // a registry of worker IDs that is made again waits (rule D)
			missing = ""
		}
		if first, err = firstMade(a.dir, missing); err != nil {
			return err
		}
	}
	if a.cfg.Segment.Enable {
		if err := a.openSegment(); err != nil {
			return err
		}
		if err := prepareEmbedded(a.dbs, a.dir, a.alloc.Mark, 10*a.cfg.Segment.LoadTimeout); err != nil {
			return err
		}
	}
	unused, err := takeUnused(a.dir)
	if err != nil || !a.cfg.Snowflake.Enable {
		return err
	}
	if err := a.openWorker(listening, first, unused); err != nil {
		if !a.snowflakeIsExtra() || !isUndetected(err) {
			return err
		}
		a.leftOut = err
		a.log.Warn("snowflake mode is off, segment mode serves alone", "reason", err)
		return nil
	}
	a.closers.add(a.withDeadline(a.worker.Close))
	return nil
}

// nodeName is how alarms name this node.
func nodeName(listening net.Addr) string {
	host, err := os.Hostname()
	if err != nil {
		return listening.String()
	}
	_, port, _ := net.SplitHostPort(listening.String())
	return net.JoinHostPort(host, port)
}

func (a *App) openSegment() error {
	c, fence, err := engineConfig(a.cfg, a.dbs, a.dir.NodeID(), a.log)
	if err != nil {
		return err
	}
	c.Alarms = a.alarms
	if fence != nil {
		a.fence = fence
		a.closers.add(fence.Close)
	}
	if a.order, err = a.openOrder(); err != nil {
		return err
	}
	if a.order != nil {
		c.Terms = a.order
	}
	if a.alloc, err = segment.New(a.dbs.router, a.dir, c); err != nil {
		return err
	}
	a.opaque.formats.Templates = a.template
	a.closers.add(a.withDeadline(a.alloc.Close))
	return nil
}

// engineConfig returns the configuration of the engine, for a node and for a command
// that issues by itself. The caller closes the fence, if there is one, after the
// engine.
func engineConfig(c config.Config, dbs *databases, nodeID string, log *slog.Logger) (_ segment.Config, fence io.Closer, err error) {
	cluster, err := openFence(c.Segment, c.ConnectTimeout, log)
	if err != nil {
		return segment.Config{}, nil, err
	}
	e := segment.Config{
		MaxWait:      c.Segment.MaxWait,
		LoadTimeout:  c.Segment.LoadTimeout,
		MaxLoads:     int(c.Segment.MaxLoads),
		SyncInterval: c.Segment.SyncInterval,
		NegativeTTL:  c.Segment.NegativeTTL,
		MaxStep:      c.Segment.MaxStep,
		FixedStep:    c.Segment.FixedStep,
		KeepUnused:   !c.Segment.ReturnUnused,
		ClusterID:    dbs.clusterID,
		Degrade:      c.Segment.FencePolicy == fenceDegrade,
		NodeID:       nodeID,
		Logger:       log,
	}
	if cluster != nil { // else the interface would hold a nil that is not nil
		e.ClusterFence, fence = cluster, cluster
	}
	return e, fence, nil
}

// withDeadline makes a step of undo.
func (a *App) withDeadline(f func(context.Context) error) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), a.cfg.ShutdownTimeout)
		defer cancel()
		return f(ctx)
	}
}

// startEngines starts the modes side by side, so that none waits for what the other
// one needs, beside the first reading of the limits.
func (a *App) startEngines(ctx context.Context) error {
	var both sync.WaitGroup
	var segment, snowflake error
	if a.alloc != nil {
		both.Go(func() { segment = a.alloc.Start(ctx) })
	}
	if a.worker != nil {
		both.Go(func() { snowflake = a.startWorker(ctx) })
	}
	both.Go(func() { a.limits.Asked(ctx) })
	both.Wait()
	return errors.Join(segment, snowflake)
}

// closeEngines ends both modes. ended says that neither will write to the data
// directory any more. Segment mode fails only if it might still write: a range that was
// not returned is no error. Snowflake mode may have failed to release its number, and
// have ended all the same.
func (a *App) closeEngines(ctx context.Context) (ended bool, err error) {
	var both sync.WaitGroup
	var segment, snowflake error
	if a.alloc != nil {
		both.Go(func() { segment = a.alloc.Close(ctx) })
		both.Go(func() { a.order.leaveNow(ctx, a.log) })
	}
	if a.worker != nil {
		both.Go(func() { snowflake = a.worker.Close(ctx) })
	}
	both.Wait()
	return segment == nil && (snowflake == nil || ctx.Err() == nil), errors.Join(segment, snowflake)
}

// errNoSegment is the answer of commands about tags on a node that serves none: it does
// not know its own fence.
var errNoSegment = fmt.Errorf("%w: segment mode is off on this node", leaf.ErrDisabled)

// errNoSnowflake is the answer of commands about worker IDs on a node without any.
var errNoSnowflake = fmt.Errorf("%w: snowflake mode is off on this node", leaf.ErrDisabled)

// noSnowflake is errNoSnowflake with the reason why this node left the mode out.
func (a *App) noSnowflake() error {
	if a.leftOut == nil {
		return errNoSnowflake
	}
	return fmt.Errorf("%w: %s", errNoSnowflake, a.leftOut.Error()) // its class would hide that of the mode
}
