package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Identify returns the ID of the registry, which the namespace does not end. Where it has none it records id first, unless id
// is "". A user who may not read the key finds none. Every error may be retried.
func (r *Records) Identify(ctx context.Context, id string) (string, error) {
	key := r.cfg.Prefix + "/id"
	response, err := r.commit(ctx, nil, []clientv3.Op{get(key)}, nil) // no write, which each member would keep in its log
	if err == nil && id != "" && len(found(response.Responses[0])) == 0 {
		response, err = r.commit(ctx, []clientv3.Cmp{isAbsent(key)}, []clientv3.Op{put(key, id), get(key)}, []clientv3.Op{get(key)})
	}
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied): // granted before there was this key, for each of the others
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read etcd key %q: %w", key, err)
	}
	return textOf(response.Responses[len(response.Responses)-1]), nil
}
