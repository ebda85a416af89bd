package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/leaf-idgen/leaf/worker"
)

// An announcement that ended keepPeers ago is deleted by the node that announces itself
// next, at most once in sweepEvery.
const (
	keepPeers  = time.Hour
	sweepEvery = time.Minute
)

// Announce implements worker.Records. It lasts for one lease by the clock of the
// database, so that no clock of a node decides which nodes are seen.
func (r *Records) Announce(ctx context.Context, p worker.Peer) (err error) {
	if err := errors.Join(
		checkText("address", p.Address, maxAddress), checkText("clock address", p.Clock, maxAddress), checkText("nonce", p.Nonce, maxName),
	); err != nil {
		return err
	}
	defer r.done(ctx, time.Now(), &err, "announce %s", p.Address)
	err = r.store.exec(ctx, r.sql.announce, p.Nonce, p.Address, p.Clock, p.Number, r.store.cfg.Lease.Milliseconds())
	if err != nil {
		return err
	}
	now, due := int64(time.Since(r.store.born)), r.sweepDue.Load()
	if now < due || !r.sweepDue.CompareAndSwap(due, now+int64(sweepEvery)) {
		return nil
	}
	return r.sweep(ctx)
}

// sweep deletes announcements that ended long ago. It looks for them first, because
// a DELETE that searches would lock the rows of nodes that are announced.
func (r *Records) sweep(ctx context.Context) error {
	gone, err := r.expired(ctx)
	for _, nonce := range gone {
		err = errors.Join(err, r.store.exec(ctx, r.sql.sweep, nonce, keepPeers.Milliseconds()))
	}
	return err
}

func (r *Records) expired(ctx context.Context) (nonces []string, err error) {
	err = eachRow(ctx, r.store.read, r.sql.expired, []any{keepPeers.Milliseconds()}, func(rows *sql.Rows) error {
		var nonce string
		err := rows.Scan(&nonce)
		nonces = append(nonces, nonce)
		return err
	})
	if err != nil {
		return nil, err
	}
	return nonces, nil
}

// Withdraw implements worker.Records.
func (r *Records) Withdraw(ctx context.Context, p worker.Peer) (err error) {
	defer r.done(ctx, time.Now(), &err, "withdraw %s", p.Address)
	return r.store.exec(ctx, r.sql.withdraw, p.Nonce)
}

// Peers implements worker.Records. Those of another cluster say nothing about the clock of this node.
func (r *Records) Peers(ctx context.Context) (all []worker.Peer, err error) {
	defer r.done(ctx, time.Now(), &err, "read the peers")
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	err = r.look(ctx, func(q querier) error {
		all = nil
		return eachRow(ctx, q, r.sql.peers, nil, func(rows *sql.Rows) error {
			var p worker.Peer
			err := rows.Scan(&p.Nonce, &p.Address, &p.Clock, &p.Number)
			all = append(all, p)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
