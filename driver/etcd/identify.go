package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Identify returns the ID of the registry, which the namespace does not end. Where it has none it records id first, unless id
// is "". A user who may not read the key finds none. Beside a store it is the ID of the store's cluster, and beside the store of
// another cluster than its own a *segment.ClusterError. Every error may be retried.
func (r *Records) Identify(ctx context.Context, id string) (string, error) {
	if r.of != nil {
		return r.identifyStore(ctx, id != "")
	}
	key := r.idKey()
	read, err := r.look(ctx, get(key)) // no write, which each member would keep in its log
	if err == nil && id != "" && len(found(read[0])) == 0 {
		if err = r.write(ctx, []clientv3.Cmp{isAbsent(key)}, put(key, id)); err == nil {
			read, err = r.look(ctx, get(key))
		}
	}
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied): // granted before there was this key, for each of the others
		r.readable.Store(false)
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read etcd key %q: %w", key, err)
	}
	r.readable.Store(true)
	return textOf(read[0]), nil
}

// identifyStore returns the ID of the cluster of the store. Where it has none and write is set, the store gets the one that this
// process knows, or a new one, if its user may write it. Only a process that takes no ranges may set write: own remembers the
// key, and a change of the tag rule in it that the store has not seen would not be compared any more.
func (r *Records) identifyStore(ctx context.Context, write bool) (string, error) {
	key := r.of.ownerKey()
	read, err := r.look(ctx, get(key))
	if err != nil {
		return "", fmt.Errorf("read etcd key %q: %w", key, err)
	}
	v, err := parseOwner(key, textOf(read[0]))
	if err == nil && v.Cluster == "" && write {
		err = r.of.own(ctx, nil, func(now *ownerValue) error {
			now.Cluster = cmp.Or(now.Cluster, r.of.newCluster())
			v = *now
			return nil
		})
		if errors.Is(err, rpctypes.ErrPermissionDenied) {
			v, err = ownerValue{}, nil
		}
	}
	return cmp.Or(v.Cluster, r.of.KnownCluster()), err
}

// Expect says which ID the registry has that this node uses. From then on, what is read of the namespace, the numbers and the
// peers is compared with it in the same transaction, and what is written names a namespace that was read so: beside another ID
// the call returns a *segment.ClusterError. Two clusters of etcd can have one cluster ID, which is made of the addresses and the
// token that they were started with. A user who may not read the key compares nothing.
func (r *Records) Expect(id string) error {
	r.own.Store(&id)
	return nil
}
