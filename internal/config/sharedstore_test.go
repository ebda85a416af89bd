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
