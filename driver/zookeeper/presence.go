package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf/worker"
)

// presence is an ephemeral node: its process has a session.
type presence struct {
	presenceRecord

	node *node
}

// readPresence returns the presence at p, nil if there is none.
func (c *conn) readPresence(ctx context.Context, p string) (*presence, error) {
	n, err := c.get(ctx, p)
	if n == nil || err != nil {
		return nil, err
	}
	return &presence{n.presence(p), n}, nil
}

// presence returns the record of a presence at p. Garbage is the presence of no process, nor is a node that no session
// ends, as in a copy of a path.
func (n *node) presence(p string) (r presenceRecord) {
	if n.stat.EphemeralOwner == 0 || decode(p, n.data, &r) != nil {
		return presenceRecord{}
	}
	return r
}

// replacePresence returns the operations that make record the presence at p in place
// of old. The old one may belong to a session that still has to run out.
func replacePresence(p string, old *presence, record presenceRecord) []any {
	ops := []any{createEphemeral(p, encode(record))}
	if old != nil {
		ops = append([]any{remove(p, old.node.stat.Version)}, ops...)
	}
	return ops
}

// announce makes peer visible at p. It is an error if the place belongs to another
// nonce.
func (c *conn) announce(ctx context.Context, p string, peer worker.Peer) error {
	record := presenceRecord{
		Format: format, Announced: true,
		Address: peer.Address, Clock: peer.Clock, Nonce: peer.Nonce, Number: peer.Number,
	}
	for {
		old, err := c.readPresence(ctx, p)
		if err != nil {
			return err
		}
		if old != nil && old.Nonce != "" && old.Nonce != peer.Nonce {
			return fmt.Errorf("announce %s: %w: %s is that of another one", peer.Address, worker.ErrTaken, p)
		}
		s, err := c.use(ctx)
		if err != nil {
			return fmt.Errorf("announce %s: %w", peer.Address, err)
		}
		if old != nil && old.presenceRecord == record && old.node.stat.EphemeralOwner == s.zk.SessionID() {
			return nil
		}
		if _, err = c.change(ctx, p, replacePresence(p, old, record)...); !errors.Is(err, errMoved) {
			return err
		}
		if old == nil { // perhaps the folder is missing; else another call was faster
			if err := c.ensure(ctx, parent(p)); err != nil {
				return err
			}
		}
	}
}

// withdraw ends the presence at p if it is the peer's.
func (c *conn) withdraw(ctx context.Context, p string, peer worker.Peer) error {
	for {
		old, err := c.readPresence(ctx, p)
		if old == nil || err != nil || old.Nonce != peer.Nonce {
			return err
		}
		if _, err := c.change(ctx, p, remove(p, old.node.stat.Version)); !errors.Is(err, errMoved) {
			return err
		}
	}
}

// peers returns the processes that are announced below folder.
func (c *conn) peers(ctx context.Context, folder string) ([]worker.Peer, error) {
	all, err := c.list(ctx, folder)
	if err != nil {
		return nil, err
	}
	var peers []worker.Peer
	for _, n := range all {
		if r := n.presence(folder + "/" + n.name); r.Announced {
			peers = append(peers, worker.Peer{Address: r.Address, Clock: r.Clock, Nonce: r.Nonce, Number: r.Number})
		}
	}
	return peers, nil
}
