package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// Namespace is a place on a ZooKeeper or etcd where nobody else writes.
type Namespace struct {
	// Servers are the host and port of each node.
	Servers []string
	// Root begins all paths or keys of the test, e.g. "/leaf-test-k3…"; no slash
	// is at its end. In ZooKeeper it is a node, which exists and is empty.
	Root string
}

// ZooKeeper returns a new root on the ZooKeeper of LEAF_TEST_ZOOKEEPER, else on a
// private one of one node. It is removed, with all below, at the end of the test.
func ZooKeeper(t testing.TB) Namespace {
	t.Helper()
	return namespace(t, zooKeeper{})
}

// Etcd returns a new prefix of keys on the etcd of LEAF_TEST_ETCD, else on a
// private one of one node. All keys that begin so are removed at the end of the
// test. A lease of our etcd lasts at least 1 s, whatever was asked for.
func Etcd(t testing.TB) Namespace {
	t.Helper()
	return namespace(t, etcd{})
}

// OwnZooKeeper starts a ZooKeeper for this test alone, which may kill, stop and
// freeze its nodes. Sessions may last from 400 ms to 60 s.
func OwnZooKeeper(t testing.TB, nodes int) *Ensemble {
	t.Helper()
	return ownEnsemble(t, zooKeeper{}, nodes, false)
}

// OwnEtcd starts an etcd for this test alone, which may kill, stop and freeze
// its nodes.
func OwnEtcd(t testing.TB, nodes int) *Ensemble {
	t.Helper()
	return ownEnsemble(t, etcd{}, nodes, false)
}

// OwnZooKeeperApart is OwnZooKeeper with nodes that the test can also cut off
// from one another.
func OwnZooKeeperApart(t testing.TB, nodes int) *Ensemble {
	t.Helper()
	return ownEnsemble(t, zooKeeper{}, nodes, true)
}

// OwnEtcdApart is OwnZooKeeperApart for etcd.
func OwnEtcdApart(t testing.TB, nodes int) *Ensemble {
	t.Helper()
	return ownEnsemble(t, etcd{}, nodes, true)
}

// ZooKeeperVersion asks for the version of a ZooKeeper that is given as
// host:port[,host:port], the form of LEAF_TEST_ZOOKEEPER.
func ZooKeeperVersion(ctx context.Context, servers string) (string, error) {
	return versionOf(ctx, zooKeeper{}, servers)
}

// EtcdVersion is ZooKeeperVersion for etcd.
func EtcdVersion(ctx context.Context, servers string) (string, error) {
	return versionOf(ctx, etcd{}, servers)
}

// versionOf returns the answer of the first server that gives one.
func versionOf(ctx context.Context, kind registry, text string) (string, error) {
	servers, err := parseServers(text)
	if err != nil {
		return "", err
	}
	var errs []error
	for _, addr := range servers {
		ctx, cancel := context.WithTimeout(ctx, versionTimeout)
		version, err := kind.version(ctx, addr)
		cancel()
		if err == nil {
			return version, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// parseServers reads host:port[,host:port].
func parseServers(text string) ([]string, error) {
	servers := strings.Split(text, ",")
	for _, s := range servers {
		if host, port, err := net.SplitHostPort(s); err != nil || host == "" || port == "" || strings.Contains(s, "/") {
			return nil, fmt.Errorf("server %q: must be host:port", s)
		}
	}
	return servers, nil
}

func namespace(t testing.TB, kind registry) Namespace {
	t.Helper()
	skipIfShort(t, kind.name())
	text := os.Getenv(kind.variable())
	if text == "" {
		servers := ownEnsemble(t, kind, 1, false).Servers()
		root, _, err := kind.fresh(t.Context(), servers) // it goes with the ensemble
		if err != nil {
			t.Fatal(err)
		}
		return Namespace{servers, root}
	}
	servers, err := parseServers(text)
	if err != nil {
		t.Fatalf("%s: %v", kind.variable(), err)
	}
	root, drop, err := kind.fresh(t.Context(), servers)
	if err != nil {
		t.Fatalf("%s: %v", kind.variable(), err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // a busy machine
		defer cancel()
		if err := drop(ctx); err != nil {
			t.Errorf("%s: %v", kind.variable(), err)
		}
	})
	return Namespace{servers, root}
}

func ownEnsemble(t testing.TB, kind registry, nodes int, apart bool) *Ensemble {
	t.Helper()
	return closed(t, kind.name(), func(ctx context.Context) (*Ensemble, error) {
		return startEnsemble(ctx, kind, "", nodes, apart)
	})
}
