package main

import (
	"context"
	"io"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// kind is one kind of server to share.
type kind struct {
	title, variable string
	debian          []string // the packages to install
	// start starts one with its data below parent; text is the variable's value.
	start func(ctx context.Context, parent string) (text string, own io.Closer, err error)
	// ask returns the version of the server that text names, and text without
	// passwords.
	ask func(ctx context.Context, text string) (shown, version string, err error)
}

// running is a server that was started here.
type running struct {
	text string // what the command finds in the variable
	io.Closer
}

// mySQL is in no release of Debian: options.kinds fetches it, or leaves it out.
var mySQL = kind{"MySQL", "LEAF_TEST_MYSQL_NEWEST", nil, startDatabase(server.StartMySQL), askDatabase}

// ZooKeeper's own package would bring a desktop's Java with it: 215 packages on
// a bare Debian 12 instead of 124.
var kinds = []kind{
	{"MariaDB", "LEAF_TEST_MYSQL", []string{"mariadb-server"}, startDatabase(server.StartMariaDB), askDatabase},
	mySQL,
	{"PostgreSQL", "LEAF_TEST_POSTGRES", []string{"postgresql"}, startDatabase(server.StartPostgres), askDatabase},
	{"ZooKeeper", "LEAF_TEST_ZOOKEEPER", []string{"libzookeeper-java", "default-jre-headless"}, startRegistry(server.StartZooKeeper), askRegistry(server.ZooKeeperVersion)},
	{"etcd", "LEAF_TEST_ETCD", []string{"etcd-server"}, startRegistry(server.StartEtcd), askRegistry(server.EtcdVersion)},
}

func startDatabase(
	start func(ctx context.Context, parent string) (*server.Instance, error),
) func(context.Context, string) (string, io.Closer, error) {
	return func(ctx context.Context, parent string) (string, io.Closer, error) {
		i, err := start(ctx, parent)
		if err != nil {
			return "", nil, err
		}
		return i.URL(), i, nil
	}
}

func askDatabase(ctx context.Context, text string) (shown, version string, err error) {
	d, err := server.ParseDatabase(text)
	if err != nil {
		return "", "", err
	}
	version, err = d.Version(ctx)
	return d.Redacted(), version, err
}

// startRegistry starts one node: what needs more, or kills some, starts its own.
func startRegistry(
	start func(ctx context.Context, parent string, nodes int) (*server.Ensemble, error),
) func(context.Context, string) (string, io.Closer, error) {
	return func(ctx context.Context, parent string) (string, io.Closer, error) {
		e, err := start(ctx, parent, 1)
		if err != nil {
			return "", nil, err
		}
		return e.Addr(0), e, nil
	}
}

func askRegistry(
	ask func(ctx context.Context, servers string) (string, error),
) func(context.Context, string) (string, string, error) {
	return func(ctx context.Context, text string) (shown, version string, err error) {
		version, err = ask(ctx, text)
		return text, version, err
	}
}
