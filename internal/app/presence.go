package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/internal/config"
)

// presence is this node in the directory. A nil presence is a node in none.
type presence struct {
	*directory

	announcer *discovery.Announcer
}

// openPresence prepares the announcements. It does not connect. A directory that is
// used by default only is left out, with a warning, if it cannot be used.
func (a *App) openPresence() (*presence, error) {
	d, err := openDirectory(a.cfg, a.dbs, a.log)
	if d == nil || err != nil {
		return nil, err
	}
	n, err := a.published()
	if err != nil {
		err = errors.Join(err, d.Close())
		if a.cfg.Node.Discovery == "" {
			a.log.Warn("this node is not published for clients to find", "reason", err)
			a.unpublished = err
			return nil, nil //nolint:nilnil // as without a directory
		}
		return nil, err
	}
	announcer, err := discovery.NewAnnouncer(d, n, discovery.Config{TTL: directoryTTL, Logger: a.log})
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return &presence{d, announcer}, nil
}

// published is what clients are told of this node.
func (a *App) published() (n discovery.Node, err error) {
	n = discovery.Node{ID: a.dir.NodeID(), Zone: a.cfg.Node.Zone, Weight: int(a.cfg.Node.Weight), Version: a.opts.Version}
	for _, p := range protocols() {
		ln := a.listeners[p.section]
		if ln == nil {
			continue
		}
		if *p.address(&n), err = clientAddress(a.cfg, ln.Addr(), a.opts.interfaces); err != nil {
			return n, err
		}
	}
	return n, nil
}

// clientAddress returns the address by which clients reach a listener.
func clientAddress(cfg config.Config, listening net.Addr, interfaces func() ([]Interface, error)) (string, error) {
	ap, err := netip.ParseAddrPort(listening.String())
	if err != nil {
		return "", fmt.Errorf("address of a listener: %w", err)
	}
	_, port, _ := net.SplitHostPort(listening.String())
	ip := ap.Addr().Unmap().WithZone("")
	switch {
	case cfg.Node.Advertise != "":
		return net.JoinHostPort(cfg.Node.Advertise, port), nil
	case !ip.IsUnspecified():
		return net.JoinHostPort(ip.String(), port), nil
	}
	list, err := interfaces()
	if err != nil {
		return "", err
	}
	if ip, err = detect(cfg.Snowflake, list); err != nil {
		return "", &config.Error{Key: "node.advertise", Limit: "no address that clients can reach was found among " + describe(list) + "; set it to the name or IP address of this node"}
	}
	return net.JoinHostPort(ip.String(), port), nil
}

// start publishes the node.
func (p *presence) start() {
	if p != nil {
		p.announcer.Start()
	}
}

// setWeight has the node published with another weight as soon as the directory answers, unless the
// node leaves it. It does not wait: the directory may be away for long.
func (p *presence) setWeight(weight int) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.announcer.SetWeight(ended, weight) // says that it did not wait
}

// longestWithdrawal bounds how long a stop waits for a directory that does not answer.
const longestWithdrawal = 2 * time.Second

// withdraw takes the node out of the directory, so that clients that ask from now on go
// elsewhere. A failure costs the clients time, and does not delay the stop further.
func (p *presence) withdraw(ctx context.Context, log *slog.Logger) {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestWithdrawal)
	defer cancel()
	switch err := p.announcer.Withdraw(ctx); {
	case err == nil:
	case p.announcer.Status().Published.IsZero():
		log.Debug("this node could not be removed from the directory of nodes, in which it was never published", "error", err)
	default:
		log.Warn("this node cannot be removed from the directory of nodes; clients find it until its entry ends", "error", err)
	}
}

// close ends the announcements and the connection.
func (p *presence) close() error {
	if p == nil {
		return nil
	}
	p.announcer.Close()
	return p.Close()
}
