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
	err = r.exec(ctx, r.sql.announce, p.Nonce, p.Address, p.Clock, p.Number, r.cfg.Lease.Milliseconds())
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
		err = errors.Join(err, r.exec(ctx, r.sql.sweep, nonce, keepPeers.Milliseconds()))
	}
	return err
}

func (r *Records) expired(ctx context.Context) (nonces []string, err error) {
	rows, err := r.store.read.QueryContext(ctx, r.sql.expired, keepPeers.Milliseconds())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var nonce string
		if err := rows.Scan(&nonce); err != nil {
			return nil, err
		}
		nonces = append(nonces, nonce)
	}
	return nonces, rows.Err()
}

// Withdraw implements worker.Records.
func (r *Records) Withdraw(ctx context.Context, p worker.Peer) (err error) {
	defer r.done(ctx, time.Now(), &err, "withdraw %s", p.Address)
	return r.exec(ctx, r.sql.withdraw, p.Nonce)
}

// exec runs one statement in a transaction, because the server's default may be not
// to commit by itself.
func (r *Records) exec(ctx context.Context, query string, args ...any) error {
	return r.transact(ctx, func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, query, args...)
		return err
	})
}

// Peers implements worker.Records.
func (r *Records) Peers(ctx context.Context) (all []worker.Peer, err error) {
	defer r.done(ctx, time.Now(), &err, "read the peers")
	rows, err := r.store.read.QueryContext(ctx, r.sql.peers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var p worker.Peer
		if err := rows.Scan(&p.Nonce, &p.Address, &p.Clock, &p.Number); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, rows.Err()
}
