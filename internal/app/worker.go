package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// openWorker opens the registry and makes the engine of snowflake mode. first and unused
// are what firstMade and takeUnused said.
func (a *App) openWorker(listening net.Addr, first bool, unused string) error {
	ap, err := netip.ParseAddrPort(listening.String())
	if err != nil {
		return fmt.Errorf("address of the HTTP server: %w", err)
	}
	if a.registry, err = openRegistry(a.cfg, a.dbs, a.log); err != nil {
		return err
	}
	a.registry.tracer = a.tracer
	if a.registry.records != nil && a.registry.inStore && a.cfg.Segment.Enable {
		a.registry.records.OfRule(a.dbs.router.Binding(0))
	}
	if err := a.registry.knownToNode(a.dir, a.log); err != nil {
		return errors.Join(err, a.registry.Close())
	}
	if err := a.registry.identify(a.cfg.Snowflake, ap.Port(), a.opts.interfaces); err != nil {
		return errors.Join(err, a.registry.Close())
	}
	if err := a.registry.checkStatic(a.dir); err != nil {
		return errors.Join(err, a.registry.Close())
	}
	c := a.workerConfig(ap)
	if a.cfg.Snowflake.UsesStores() && a.registry.records != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*a.cfg.Segment.LoadTimeout)
		defer cancel()
		// Segment mode prepares its tables too, so that neither mode waits for the other.
		made, err := a.registry.records.Prepare(ctx)
		switch {
		case err != nil && a.dbs.embedded:
			return errors.Join(fmt.Errorf("prepare the registry of worker IDs: %w", err), a.registry.Close())
		case err != nil: // a configured file, perhaps locked: the first claim will tell
			a.log.Warn("the registry of worker IDs cannot be prepared", "error", err)
		}
		// A configured store, also a file that this start has made again, may have been
		// the registry of nodes that still run; only the embedded one is ours. A file
		// that this start has made is not the file that the mark unused speaks of, nor is a
		// copy of another database that was put in its place.
		c.Fresh = a.dbs.embedded && made && first
		if a.dbs.embedded && !made && unused != "" {
			id, err := a.registry.records.ClusterID(ctx)
			if err != nil {
				return errors.Join(fmt.Errorf("prepare the registry of worker IDs: %w", err), a.registry.Close())
			}
			c.Fresh = id == unused
		}
	}
	if a.worker, err = worker.New(a.registry, a.dir, c); err != nil {
		return errors.Join(err, a.registry.Close())
	}
	return nil
}

func (a *App) workerConfig(listening netip.AddrPort) worker.Config {
	c := a.cfg.Snowflake
	w := worker.Config{
		Layout:     a.registry.layout,
		Layouts:    c.Layouts,
		Datacenter: new(max(0, c.Datacenter)),
		Namespace:  c.Namespace,
		Address:    a.registry.address,
		Numbers:    a.registry.numbers,
		NodeID:     a.dir.NodeID(),
		Horizon:    c.Horizon,
		Renew:      c.Renew,
		Lease:      c.Lease,
		Margin:     c.Margin,
		Tolerance:  c.Tolerance,
		Jump:       c.ClockJump,
		Standby:    c.Standby,
		KeepOnStop: !c.Release,
		Clock: worker.ClockCheck{
			Ask:         a.askClock,
			Self:        clockAddress(a.registry.address, listening),
			Threshold:   c.PeerThreshold,
			Timeout:     c.PeerTimeout,
			Interval:    c.PeerInterval,
			RefuseAlone: c.PeerPolicy == "refuse",
		},
		Alarms: a.alarms,
		Logger: a.log,
	}
	if c.Tolerance == 0 {
		w.Tolerance = -1 // the zero value of the engine is its default
	}
	if c.ClockPolicy == "use-reserved" {
		w.Policy = snowflake.UseReserved
	}
	return w
}

// selfClock is clockAddress of this node.
func (a *App) selfClock() string {
	ap, err := netip.ParseAddrPort(a.Addr())
	if err != nil {
		return ""
	}
	return clockAddress(a.registry.address, ap)
}

// clockAddress returns where other nodes can ask this one for its time: at its
// identity's IP, if the HTTP server listens there; "" if nowhere.
func clockAddress(identity string, listening netip.AddrPort) string {
	ap, err := netip.ParseAddrPort(identity)
	if err != nil {
		return ""
	}
	if on := listening.Addr().Unmap(); !on.IsUnspecified() && on != ap.Addr() {
		return ""
	}
	return netip.AddrPortFrom(ap.Addr(), listening.Port()).String()
}

// asPeer is how this node, which has TLS, asks another one.
func (a *App) asPeer() *tls.Config {
	return &tls.Config{
		// Where clients must show a certificate, the node shows its own.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return a.certificate.Load(), nil },
		MinVersion:           a.secure.MinVersion,
		// Peers are known by an IP that no certificate need name. A false answer can
		// raise an alarm or delay a start, as it could over plain HTTP, and no more.
		InsecureSkipVerify: true, //nolint:gosec // see above
	}
}

// maxClockReply bounds what a peer may answer, in bytes.
const maxClockReply = 1 << 10

// askClock asks a peer's HTTP server for its time. A node with TLS expects the same of
// its peers, and else finds those that have it not yet.
func (a *App) askClock(ctx context.Context, p worker.Peer) (time.Time, error) {
	if a.secure == nil {
		return askClock(ctx, "http", p.Clock, nil)
	}
	own := a.asPeer()
	now, err := askClock(ctx, "https", p.Clock, own)
	if err == nil {
		return now, nil
	}
	if now, plainErr := askClock(ctx, "http", p.Clock, nil); plainErr == nil {
		return now, nil
	}
	return time.Time{}, err
}

// askClock asks one address. Every question has a connection of its own, because it is
// asked once a minute, and no proxy is used, because it would add to the round trip.
func askClock(ctx context.Context, scheme, address string, secure *tls.Config) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+"/v1/clock", nil)
	if err != nil {
		return time.Time{}, fmt.Errorf("clock address %q: %w", address, err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true, TLSClientConfig: secure}).RoundTrip(req)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return time.Time{}, fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	var reply struct {
		UnixMilli int64 `json:"unix_ms"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxClockReply)).Decode(&reply); err != nil {
		return time.Time{}, fmt.Errorf("read the time: %w", err)
	}
	if reply.UnixMilli <= 0 {
		return time.Time{}, fmt.Errorf("it tells no time: unix_ms=%d", reply.UnixMilli)
	}
	return time.UnixMilli(reply.UnixMilli), nil
}

// startWorker makes the first claim. Its errors are those that no waiting can heal.
func (a *App) startWorker(ctx context.Context) error {
	err := a.worker.Start(ctx)
	switch {
	case err == nil || ctx.Err() != nil || leaf.ClassOf(err).Err != nil:
		return err
	case errors.Is(err, worker.ErrSchema) && a.snowflakeIsExtra():
		a.log.Warn("segment mode serves alone until the tables of snowflake mode exist; the node keeps trying", "error", err, "do", "do what the error says, or start with --no-snowflake-enable")
		return nil
	case errors.Is(err, worker.ErrSchema):
		return fmt.Errorf("%w: snowflake mode: %w; or start with --no-snowflake-enable", leaf.ErrNotReady, err)
	}
	return fmt.Errorf("%w: snowflake mode: %w", leaf.ErrConflict, err)
}

// snowflakeIsExtra reports whether snowflake mode is on only by default, in a database that was
// made for segment mode, such as that of the Java server. Segment mode must then be served also
// if the tables of snowflake mode are missing, or if this machine has no address but the
// loopback.
func (a *App) snowflakeIsExtra() bool {
	return !a.opts.Snowflake && a.cfg.Segment.Enable && a.cfg.Snowflake.Registry == config.RegistryAuto && !a.dbs.embedded
}
