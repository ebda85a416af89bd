package config_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"
)

// TestSharedWithPrivate: a node that shares anything with others does not start on a
// database of its own, where every node would issue 1, 2, 3.
func TestSharedWithPrivate(t *testing.T) {
	t.Parallel()
	etcd := map[string][]string{"snowflake.registry": {"etcd"}, "snowflake.registry-address": {"h:2379"}}
	for _, tt := range []struct {
		name    string
		flags   map[string][]string
		more    map[string][]string
		refused string
	}{
		{"nothing is shared", nil, nil, ""},
		{"registry in etcd", etcd, nil, "snowflake.registry=etcd"},
		{"with a shared database", etcd, map[string][]string{"store": {"mysql://h/db"}}, ""},
		{"without segment mode", etcd, map[string][]string{"segment.enable": {"false"}}, ""},
		{"without snowflake mode", etcd, map[string][]string{"snowflake.enable": {"false"}}, ""},
		{"on purpose", etcd, map[string][]string{"store-private": {"true"}}, ""},
		{"registry in ZooKeeper", map[string][]string{"snowflake.registry": {"zookeeper"}, "snowflake.registry-address": {"h:2181"}, "snowflake.address": {"10.0.0.1:8080"}}, nil, "snowflake.registry=zookeeper"},
		{"registry in a database", map[string][]string{"snowflake.registry": {"sql"}, "snowflake.registry-address": {"mysql://h/db"}}, nil, "snowflake.registry-address"},
		{"static number", map[string][]string{"snowflake.registry": {"static"}, "snowflake.worker-id": {"1"}}, nil, ""},
		{"cluster fence", map[string][]string{"segment.cluster-fence": {"etcd://h:2379/leaf"}}, nil, "segment.cluster-fence"},
		{"directory", map[string][]string{"node.discovery": {"etcd://h:2379/leaf"}}, nil, "node.discovery"},
		{"no directory", map[string][]string{"node.discovery": {"off"}}, nil, ""},
		{"directory without segment mode", map[string][]string{"node.discovery": {"etcd://h:2379/leaf"}, "segment.enable": {"false"}}, nil, "node.discovery"},
		{"directory, worker IDs in etcd", etcd, map[string][]string{"node.discovery": {"etcd://h:2379/leaf"}, "segment.enable": {"false"}}, ""},
		{"two static numbers", map[string][]string{"snowflake.registry": {"static"}, "snowflake.address": {"10.0.0.1:8080"}, "snowflake.worker-map": {"10.0.0.1:8080=1", "10.0.0.2:8080=2"}}, nil, "snowflake.worker-map"},
		{"numbers of host names", map[string][]string{"snowflake.registry": {"static"}, "snowflake.worker-from-hostname": {"true"}}, nil, "snowflake.worker-from-hostname"},
		{"numbers of host names without segment mode", map[string][]string{"snowflake.registry": {"static"}, "snowflake.worker-from-hostname": {"true"}}, map[string][]string{"segment.enable": {"false"}}, ""},
	} {
		flags := map[string][]string{}
		for _, m := range []map[string][]string{tt.flags, tt.more} {
			maps.Copy(flags, m)
		}
		_, err := config.Load(config.Input{Environ: home, Flags: flags})
		want := "store: must name the database that the nodes share, because " + tt.refused
		if (err != nil) != (tt.refused != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.refused)
		}
		// The advice would leave the worker IDs where they are.
		if inEmbedded := tt.flags["snowflake.registry"] == nil; err != nil && inEmbedded == strings.Contains(err.Error(), "segment.enable=false") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestUnknownRegistryIsShared: a kind of registry that is added later counts as shared
// until it is named otherwise (rule W).
func TestUnknownRegistryIsShared(t *testing.T) {
	t.Parallel()
	c := config.Config{}
	c.Segment.Enable, c.Snowflake.Enable = true, true
	c.Snowflake.Registry = "added-later"
	if err := c.SharedStore(); err == nil || !strings.Contains(err.Error(), "snowflake.registry=added-later") {
		t.Errorf("beside the embedded database: %v, want an error that names the registry", err)
	}
}

// TestStandbyNeedsARegistry: both nodes of a pair would serve with one worker ID where neither
// knows of the other.
func TestStandbyNeedsARegistry(t *testing.T) {
	t.Parallel()
	standby := map[string][]string{"snowflake.standby": {"true"}}
	for _, tt := range []struct {
		name    string
		flags   map[string][]string
		refused string
	}{
		{"static number", map[string][]string{"snowflake.registry": {"static"}, "snowflake.worker-id": {"7"}}, "snowflake.registry=static"},
		{"embedded database", map[string][]string{"snowflake.worker-range": {"7-7"}}, "the embedded database"},
		{"private database", map[string][]string{"snowflake.worker-range": {"7-7"}, "store-private": {"true"}}, "the embedded database"},
		{"file", map[string][]string{"store": {"sqlite:/var/lib/leaf/leaf.db"}}, "an SQLite file on each machine"},
		{"file of worker IDs", map[string][]string{"snowflake.registry": {"sql"}, "snowflake.registry-address": {"sqlite:/var/lib/leaf/leaf.db"}, "segment.enable": {"false"}}, "an SQLite file on each machine"},
		{"file of one machine", map[string][]string{"store": {"sqlite:/var/lib/leaf/leaf.db"}, "store-private": {"true"}}, ""},
		{"file of tags", map[string][]string{"store": {"sqlite:/var/lib/leaf/leaf.db"}, "store-private": {"true"}, "snowflake.registry": {"etcd"}, "snowflake.registry-address": {"h:2379"}}, ""},
		{"shared database", map[string][]string{"snowflake.worker-range": {"7-7"}, "store": {"mysql://h/db"}}, ""},
		{"database of its own", map[string][]string{"snowflake.registry": {"sql"}, "snowflake.registry-address": {"mysql://h/db"}, "segment.enable": {"false"}}, ""},
		{"etcd", map[string][]string{"snowflake.registry": {"etcd"}, "snowflake.registry-address": {"h:2379"}, "segment.enable": {"false"}}, ""},
		{"snowflake mode off", map[string][]string{"snowflake.enable": {"false"}}, ""},
	} {
		flags := maps.Clone(standby)
		maps.Copy(flags, tt.flags)
		_, err := config.Load(config.Input{Environ: home, Flags: flags})
		if (err != nil) != (tt.refused != "") || err != nil && !strings.Contains(err.Error(), "needs a registry that both nodes of the pair use: with "+tt.refused) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.refused)
		}
	}
}

// TestFileBesideOtherMachines: an SQLite file is another one on each machine, so a node that shares
// anything with nodes of other machines has neither its tags nor its worker IDs in one.
func TestFileBesideOtherMachines(t *testing.T) {
	t.Parallel()
	const file = "sqlite:/var/lib/leaf/leaf.db"
	etcd := map[string][]string{"snowflake.registry": {"etcd"}, "snowflake.registry-address": {"h:2379"}}
	workers := map[string][]string{"snowflake.registry": {"sql"}, "snowflake.registry-address": {"sqlite:/var/lib/leaf/workers.db"}}
	addresses := func(list ...string) map[string][]string {
		return map[string][]string{"snowflake.registry": {"static"}, "snowflake.address": {"10.0.0.1:8080"}, "snowflake.worker-map": list}
	}
	for _, tt := range []struct {
		name    string
		flags   map[string][]string
		more    map[string][]string
		refused string
	}{
		{"nothing is shared", nil, map[string][]string{"store": {file}}, ""},
		{"registry in etcd", etcd, map[string][]string{"store": {file}}, `store="` + file + `" (--store): is a file of this machine, and snowflake.registry=etcd says`},
		{"tags in MySQL and in a file", etcd, map[string][]string{"store": {"a=mysql://h/db", "b=" + file}}, `store="b=` + file + `" (--store): is a file of this machine, and snowflake.registry=etcd says`},
		{"cluster fence", map[string][]string{"segment.cluster-fence": {"etcd://h:2379/leaf"}}, map[string][]string{"store": {file}}, "segment.cluster-fence says"},
		{"directory", map[string][]string{"node.discovery": {"etcd://h:2379/leaf"}}, map[string][]string{"store": {file}}, "node.discovery says"},
		{"directory in the file", map[string][]string{"node.discovery": {"store"}}, map[string][]string{"store": {file}}, ""},
		{"directory, worker IDs in the file", map[string][]string{"node.discovery": {"etcd://h:2379/leaf"}, "segment.enable": {"false"}}, map[string][]string{"store": {file}}, "node.discovery says"},
		{"all on this machine", etcd, map[string][]string{"store": {file}, "store-private": {"true"}}, ""},
		{"static numbers of two machines", addresses("10.0.0.1:8080=1", "10.0.0.2:8080=2"), map[string][]string{"store": {file}}, "snowflake.worker-map says"},
		{"static numbers of one machine", addresses("10.0.0.1:8080=1", "10.0.0.1:8081=2"), map[string][]string{"store": {file}}, ""},
		{"numbers of host names", map[string][]string{"snowflake.registry": {"static"}, "snowflake.worker-from-hostname": {"true"}}, map[string][]string{"store": {file}}, "snowflake.worker-from-hostname says"},
		{"worker IDs in a file beside MySQL", workers, map[string][]string{"store": {"mysql://h/db"}}, `snowflake.registry-address="sqlite:/var/lib/leaf/workers.db" (--snowflake-registry-address): is a file of this machine, and store says`},
		{"worker IDs in a file beside a directory", workers, map[string][]string{"segment.enable": {"false"}, "node.discovery": {"etcd://h:2379/leaf"}}, "node.discovery says"},
		{"worker IDs and tags in two files", workers, map[string][]string{"store": {file}}, ""},
		{"worker IDs in a file beside MySQL, on one machine", workers, map[string][]string{"store": {"mysql://h/db"}, "store-private": {"true"}}, ""},
	} {
		flags := map[string][]string{}
		for _, m := range []map[string][]string{tt.flags, tt.more} {
			maps.Copy(flags, m)
		}
		_, err := config.Load(config.Input{Environ: home, Flags: flags})
		if (err != nil) != (tt.refused != "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.refused)
		}
	}
}
