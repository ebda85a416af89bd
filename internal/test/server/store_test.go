package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// store uses an ensemble by its real client library, so that what the tests see
// is not only what this package itself says. Both calls try again while the
// ensemble holds an election, with a new client each time: an old one would
// first wait for its next attempt to connect.
type store struct {
	put   func(ctx context.Context, servers []string, keys ...string) error
	count func(ctx context.Context, servers []string, prefix string) (int, error)
}

// attempt bounds one try.
const attempt = 3 * time.Second

func mustPut(t *testing.T, s store, servers []string, keys ...string) {
	t.Helper()
	var last error
	defer func() { logIf(t, last) }()
	waitUntil(t, "put "+keys[0], func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), attempt)
		defer cancel()
		last = s.put(ctx, servers, keys...)
		return last == nil
	})
}

func mustCount(t *testing.T, s store, servers []string, prefix string) (n int) {
	t.Helper()
	var last error
	defer func() { logIf(t, last) }()
	waitUntil(t, "count "+prefix, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), attempt)
		defer cancel()
		n, last = s.count(ctx, servers, prefix)
		return last == nil
	})
	return n
}

func logIf(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Logf("the last attempt: %v", err)
	}
}

var zooKeeperStore = store{
	put: func(ctx context.Context, servers []string, keys ...string) error {
		return withZooKeeper(ctx, servers, func(c *zk.Conn) error {
			for _, key := range keys {
				_, err := c.Create(key, nil, 0, zk.WorldACL(zk.PermAll))
				if err != nil && !errors.Is(err, zk.ErrNodeExists) { // an earlier attempt lost its answer
					return err
				}
			}
			return nil
		})
	},
	count: func(ctx context.Context, servers []string, prefix string) (n int, err error) {
		err = withZooKeeper(ctx, servers, func(c *zk.Conn) error {
			if _, err := c.Sync("/"); err != nil {
				return err
			}
			n, err = countNodes(c, "/", prefix)
			return err
		})
		return n, err
	},
}

func countNodes(c *zk.Conn, path, prefix string) (n int, err error) {
	if path != "/" && strings.HasPrefix(path, prefix) {
		n++
	}
	children, _, err := c.Children(path)
	if err != nil {
		return 0, err
	}
	for _, child := range children {
		if path == "/" && child == "zookeeper" {
			continue // the server's own
		}
		below, err := countNodes(c, strings.TrimSuffix(path, "/")+"/"+child, prefix)
		if err != nil {
			return 0, err
		}
		n += below
	}
	return n, nil
}

func withZooKeeper(ctx context.Context, servers []string, do func(*zk.Conn) error) error {
	c, _, err := zk.Connect(servers, attempt, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, c.Close)()
	return do(c)
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

var etcdStore = store{
	put: func(ctx context.Context, servers []string, keys ...string) error {
		return withEtcd(servers, func(c *clientv3.Client) error {
			for _, key := range keys {
				if _, err := c.Put(ctx, key, ""); err != nil {
					return err
				}
			}
			return nil
		})
	},
	count: func(ctx context.Context, servers []string, prefix string) (n int, err error) {
		err = withEtcd(servers, func(c *clientv3.Client) error {
			r, err := c.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err == nil {
				n = int(r.Count)
			}
			return err
		})
		return n, err
	},
}

func withEtcd(servers []string, do func(*clientv3.Client) error) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: servers, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}
