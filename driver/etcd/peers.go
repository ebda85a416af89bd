package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/worker"
)

// Announce implements worker.Records. Each call takes a lease of its own: nothing need
// be remembered or repaired, and the lease of the call before ends by itself without
// taking the key along.
func (r *Records) Announce(ctx context.Context, p worker.Peer) error {
	key, value := r.peersKey()+p.Nonce, encode(peerValue{Address: p.Address, Clock: p.Clock, Nonce: p.Nonce, Number: p.Number})
	err := r.do(ctx, func(client *clientv3.Client) error {
		lease, err := client.Grant(ctx, int64(r.cfg.Lease/time.Second))
		if err != nil {
			return err
		}
		_, err = client.Put(ctx, key, value, clientv3.WithLease(lease.ID))
		return err
	})
	if err != nil {
		return fmt.Errorf("write etcd key %q with a lease: %w", key, err)
	}
	return nil
}

// Withdraw implements worker.Records.
func (r *Records) Withdraw(ctx context.Context, p worker.Peer) error {
	key := r.peersKey() + p.Nonce
	err := r.do(ctx, func(client *clientv3.Client) error {
		_, err := client.Delete(ctx, key)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete etcd key %q: %w", key, err)
	}
	return nil
}

// Peers implements worker.Records. Those of another cluster say nothing about the clock of this node.
func (r *Records) Peers(ctx context.Context) (peers []worker.Peer, err error) {
	read, err := r.look(ctx, getAll(r.peersKey()))
	if err != nil {
		return nil, fmt.Errorf("read peers below etcd key %q: %w", r.peersKey(), err)
	}
	for _, kv := range found(read[0]) {
		var value peerValue
		if decode(string(kv.Key), kv.Value, &value) == nil { // else the entry is skipped
			peers = append(peers, worker.Peer{Address: value.Address, Clock: value.Clock, Nonce: value.Nonce, Number: value.Number})
		}
	}
	return peers, nil
}
