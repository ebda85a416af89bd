package directory

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/driver/zookeeper"
)

// etcdFolder is where the nodes' own configuration puts them; the other registries have
// their place in the driver.
const etcdFolder = "/leaf/node"

// connectTimeout is how long a database may take to greet. The default is for nodes, whose callers wait. A client reads the
// list in the background, within 5 s, and each reading begins with a connection: a database that always takes longer would
// never be read.
const connectTimeout = 2 * time.Second

// Open returns the directory at url, which is what the nodes have as node.discovery, or
// as their first store:
//
//	mysql://user:password@host:3306/database             also mariadb://
//	postgres://user:password@host:5432/database          also postgresql://
//	sqlite:PATH                                          all on one machine
//	etcd://[user:password@]host:2379,host:2379/NAME      etcds:// with TLS
//	zookeeper://host:2181,host:2181/[FOLDER/]NAME
//
// A database is connected to for each reading of the list only.
//
// Entries that cannot be a node are named in slog.Default(). The caller closes it. The
// error is leaf.ErrBadRequest.
func Open(url string) (discovery.Directory, error) {
	log := slog.Default()
	switch scheme(url) {
	case "zookeeper":
		cfg, err := zookeeper.ParseURL(url)
		if err != nil {
			return nil, err
		}
		cfg.Logger = log
		return opened(zookeeper.NewDirectory(cfg))
	case "etcd", "etcds":
		cfg, err := etcd.ParseURL(url, etcdFolder)
		if err != nil {
			return nil, err
		}
		cfg.Logger = log
		return opened(etcd.NewDirectory(cfg))
	}
	databases := sqldb.Prefixes()
	if slices.ContainsFunc(databases, func(prefix string) bool { return scheme(prefix) == scheme(url) }) {
		return opened(sqldb.OpenDirectory(url, sqldb.Config{Logger: log, Brief: true, ConnectTimeout: connectTimeout}))
	}
	return nil, leaf.BadField("directory scheme", scheme(url), "must be that of zookeeper://, etcd://, etcds://, "+strings.Join(databases, ", "))
}

// scheme is all of a text without a colon.
func scheme(url string) string {
	before, _, _ := strings.Cut(url, ":")
	return before
}

// opened keeps a nil pointer out of the interface.
func opened[D discovery.Directory](d D, err error) (discovery.Directory, error) {
	if err != nil {
		return nil, err
	}
	return d, nil
}
