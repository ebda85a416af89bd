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

// store is a client of the real library, so that what the tests see is not only
// what this package itself says. Both calls try again while the ensemble holds
// an election.
type store struct {
	put   func(t *testing.T, key string)
	count func(t *testing.T, prefix string) int
}

const storePatience = 20 * time.Second

func openZooKeeper(t testing.TB, servers []string) store {
	c, _, err := zk.Connect(servers, 10*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var count func(path, prefix string) (int, error)
	count = func(path, prefix string) (n int, err error) {
		if strings.HasPrefix(path, prefix) && path != "/" {
			n++
		}
		children, _, err := c.Children(path)
		for _, child := range children {
			if path == "/" && child == "zookeeper" {
				continue // the server's own
			}
			below, err := count(strings.TrimSuffix(path, "/")+"/"+child, prefix)
			if err != nil {
				return 0, err
			}
			n += below
		}
		return n, err
	}
	return store{
		put: func(t *testing.T, key string) {
			t.Helper()
			patiently(t, func() error {
				_, err := c.Create(key, nil, 0, zk.WorldACL(zk.PermAll))
				if errors.Is(err, zk.ErrNodeExists) { // an attempt that lost its answer
					return nil
				}
				return err
			})
		},
		count: func(t *testing.T, prefix string) (n int) {
			t.Helper()
			patiently(t, func() (err error) {
				if _, err = c.Sync("/"); err == nil {
					n, err = count("/", prefix)
				}
				return err
			})
			return n
		},
	}
}

func openEtcd(t testing.TB, servers []string) store {
	c, err := clientv3.New(clientv3.Config{Endpoints: servers, DialTimeout: storePatience, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	short := func(t *testing.T) (context.Context, context.CancelFunc) {
		return context.WithTimeout(t.Context(), 2*time.Second)
	}
	return store{
		put: func(t *testing.T, key string) {
			t.Helper()
			patiently(t, func() error {
				ctx, cancel := short(t)
				defer cancel()
				_, err := c.Put(ctx, key, "")
				return err
			})
		},
		count: func(t *testing.T, prefix string) (n int) {
			t.Helper()
			patiently(t, func() error {
				ctx, cancel := short(t)
				defer cancel()
				r, err := c.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
				if err == nil {
					n = int(r.Count)
				}
				return err
			})
			return n
		},
	}
}

// patiently tries until do succeeds.
func patiently(t *testing.T, do func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(storePatience); ; <-tick.C {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %v: %v", storePatience, err)
		}
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
