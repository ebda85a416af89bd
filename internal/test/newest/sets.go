package newest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// set is a server, or another program, as Debian packages it.
type set struct {
	pkg string // the package; its dependencies come with it
	// programs are paths below the root that match these patterns. They are found by the
	// last element of their path, unless as has another name for it.
	programs []string
	as       map[string]string
}

// sets are all of them, by the name that Programs takes.
var sets = map[string]set{
	"mysql":     {pkg: "mysql-server-core", programs: []string{"usr/sbin/mysqld"}},
	"mariadb":   {pkg: "mariadb-server", programs: []string{"usr/sbin/mariadbd", "usr/bin/mariadb-install-db", "usr/bin/wsrep_sst_*"}},
	"postgres":  {pkg: "postgresql", programs: []string{"usr/lib/postgresql/*/bin/*"}},
	"zookeeper": {pkg: "libzookeeper-java", programs: []string{"usr/share/java/zookeeper.jar"}},
	"etcd":      {pkg: "etcd-server", programs: []string{"usr/bin/etcd"}},
	"redis":     {pkg: "redis-server", programs: []string{"usr/bin/redis-*"}},
	"valkey": {pkg: "valkey-server", programs: []string{"usr/bin/valkey-*"}, as: map[string]string{
		"valkey-server": "redis-server", "valkey-cli": "redis-cli", "valkey-benchmark": "redis-benchmark",
	}},
}

// assumed are packages that the servers depend on and that tests do not need: tools of
// the administrator, a desktop's Java, and what the machine has anyway. apt-get believes
// that they are installed. That spares 10 MB of MySQL and 220 MB of ZooKeeper.
var assumed = []string{
	"adduser", "debconf", "dpkg", "gawk", "iproute2", "locales", "lsof", "passwd", "perl", "procps", "psmisc", "rsync", "socat", "systemd", "tzdata",
	"libdbi-perl", "postgresql-client-common", "postgresql-common", "ssl-cert",
	"default-jre-headless", "junit4", "libfindbugs-annotations-java", "libguava-java", "libjetty9-extra-java", "libjetty9-java",
	"liblog4j1.2-java", "libnetty-tcnative-java",
}

// Names returns the names of all sets, in order.
func Names() []string { return slices.Sorted(maps.Keys(sets)) }

// setNamed returns a set.
func setNamed(name string) (set, error) {
	s, ok := sets[name]
	if !ok {
		return set{}, fmt.Errorf("no newest server is called %q; the names are %s", name, strings.Join(Names(), ", "))
	}
	return s, nil
}

// status is what apt-get reads about the assumed packages. The epoch makes them newer
// than any version that a dependency asks for.
func status(architecture string) string {
	var b strings.Builder
	for _, name := range assumed {
		fmt.Fprintf(&b, "Package: %s\nStatus: install ok installed\nArchitecture: %s\nMulti-Arch: allowed\nVersion: 99:9999\n"+
			"Maintainer: none\nDescription: not needed\n\n", name, architecture)
	}
	return b.String()
}
