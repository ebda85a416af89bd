package app_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf/internal/app"
)

// TestReloadPasswords: of the addresses of databases and registries only the passwords
// change while the node runs. Everything else is named, and left as it is.
func TestReloadPasswords(t *testing.T) {
	t.Parallel()
	stores := []string{"a=mysql://leaf:one@127.0.0.1:1/ids?tls=false", "b=postgres://leaf:one@127.0.0.1:1/ids"}
	c := embedded(shortDir(t))
	c.Stores = stores
	c.Node.Discovery = "etcd://leaf:one@127.0.0.1:1/prod"
	c.Segment.ClusterFence = "etcd://leaf:one@127.0.0.1:1/prod"
	c.Snowflake.Registry, c.Snowflake.Addresses = "etcd", []string{"http://leaf:one@127.0.0.1:1"}
	c.Snowflake.Address, c.Snowflake.Force = "127.0.0.1:1", true
	a, err := app.New(c, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop(context.Background()) })
	for _, tt := range []struct {
		name      string
		change    func(c *config.Config)
		passwords int
		restart   []string
	}{
		{"nothing", func(*config.Config) {}, 0, nil},
		{"a password", func(c *config.Config) { c.Stores[0] = "a=mysql://leaf:two@127.0.0.1:1/ids?tls=false" }, 1, nil},
		{"the same again", func(c *config.Config) { c.Stores[0] = "a=mysql://leaf:two@127.0.0.1:1/ids?tls=false" }, 0, nil},
		{"back", func(*config.Config) {}, 1, nil},
		{
			"a host, beside a password",
			func(c *config.Config) {
				c.Stores = []string{"a=mysql://leaf:two@db2:1/ids?tls=false", "b=postgres://leaf:two@127.0.0.1:1/ids"}
			}, 1,
			[]string{`store a: host "db2" instead of "127.0.0.1"`},
		},
		{"back", func(*config.Config) {}, 1, nil},
		{"a port", func(c *config.Config) { c.Stores[1] = "b=postgres://leaf:one@127.0.0.1:2/ids" }, 0, []string{`store b: port "2" instead of "1"`}},
		{"a database", func(c *config.Config) { c.Stores[1] = "b=postgres://leaf:one@127.0.0.1:1/other" }, 0, []string{`store b: database "other" instead of "ids"`}},
		{"a user", func(c *config.Config) { c.Stores[1] = "b=postgres://eve:one@127.0.0.1:1/ids" }, 0, []string{`store b: user "eve" instead of "leaf"`}},
		{"a parameter", func(c *config.Config) { c.Stores[0] = "a=mysql://leaf:one@127.0.0.1:1/ids?tls=true" }, 0, []string{`store a: parameter tls "true" instead of "false"`}},
		{"another kind", func(c *config.Config) { c.Stores[1] = "b=sqlite:/tmp/x.db" }, 0, []string{`store b: database kind "sqlite" instead of "postgres"`}},
		{"a name", func(c *config.Config) { c.Stores[1] = "c=postgres://leaf:one@127.0.0.1:1/ids" }, 0, []string{`store b: name "c" instead of "b"`}},
		{"one database", func(c *config.Config) { c.Stores = []string{"mysql://leaf:one@127.0.0.1:1/ids"} }, 0, []string{"store"}},
		{
			"passwords of etcd",
			func(c *config.Config) {
				c.Node.Discovery, c.Segment.ClusterFence = "etcd://leaf:two@127.0.0.1:1/prod", "etcd://leaf:two@127.0.0.1:1/prod"
				c.Snowflake.Addresses = []string{"http://leaf:two@127.0.0.1:1"}
			}, 3, nil,
		},
		{"back", func(*config.Config) {}, 3, nil},
		{
			"places in etcd",
			func(c *config.Config) {
				c.Node.Discovery, c.Segment.ClusterFence = "etcd://leaf:one@127.0.0.1:1/test", "etcd://eve:one@127.0.0.1:1/prod"
				c.Snowflake.Addresses = []string{"http://leaf:one@127.0.0.1:2"}
			}, 0,
			[]string{
				`snowflake.registry-address: ["http://127.0.0.1:2"] below "/leaf/worker/leaf" instead of ["http://127.0.0.1:1"] below "/leaf/worker/leaf"`,
				`segment.cluster-fence: user "eve" instead of "leaf"`,
				`node.discovery: ["http://127.0.0.1:1"] below "/leaf/node/test" instead of ["http://127.0.0.1:1"] below "/leaf/node/prod"`,
			},
		},
		{"another fence", func(c *config.Config) { c.Segment.ClusterFence = "zookeeper://127.0.0.1:1/prod" }, 0, []string{"segment.cluster-fence"}},
	} {
		next := c
		next.Stores = slices.Clone(stores)
		tt.change(&next)
		r, err := a.Reload(next)
		if err != nil || r.Passwords != tt.passwords || !slices.Equal(r.Restart, tt.restart) {
			t.Errorf("%s: %+v, %v; want %d passwords, %q", tt.name, r, err, tt.passwords, tt.restart)
		}
	}
	// A file that cannot be read leaves all passwords as they are.
	next := c
	next.Stores = []string{"a=mysql://leaf:two@127.0.0.1:1/ids?tls=false", "b=postgres://leaf:one@127.0.0.1:1/ids?sslrootcert=/missing"}
	if _, err := a.Reload(next); err == nil || strings.Contains(err.Error(), "one@") {
		t.Errorf("a certificate that is not there: %v", err)
	}
	if r, err := a.Reload(c); err != nil || r.Passwords != 0 {
		t.Errorf("after a refusal: %+v, %v", r, err)
	}
}

// TestReloadPasswordOfEtcd: a store in etcd, with the worker IDs, the directory and the slots beside it.
func TestReloadPasswordOfEtcd(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Stores = []string{"etcd://leaf:one@127.0.0.1:1,127.0.0.1:2/prod"}
	c.Snowflake.Address, c.Snowflake.Force = "127.0.0.1:1", true
	c.Node.Discovery = config.DiscoveryStore
	a, err := app.New(c, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop(context.Background()) })
	slots, err := a.OpenSlots()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slots.Close() })
	if at := slots.Info().Reset; at != "etcdctl del /leaf/segment/prod/slots/namespace" {
		t.Errorf("the slots are deleted by %q", at)
	}
	for _, tt := range []struct {
		store     string
		passwords int
		restart   []string
	}{
		{c.Stores[0], 0, nil},
		{"etcd://leaf:two@127.0.0.1:1,127.0.0.1:2/prod", 1, nil},
		{"etcd://leaf:two@127.0.0.1:1,127.0.0.1:2/prod", 0, nil},
		{"etcd://eve:two@127.0.0.1:1,127.0.0.1:2/prod", 0, []string{`store: user "eve" instead of "leaf"`}},
		{"etcd://leaf:two@127.0.0.1:1/test", 0, []string{`store: ["http://127.0.0.1:1"] below "/leaf/segment/test" instead of ["http://127.0.0.1:1" "http://127.0.0.1:2"] below "/leaf/segment/prod"`}},
		{"mysql://leaf:two@127.0.0.1:1/ids", 0, []string{"store"}},
	} {
		next := c
		next.Stores = []string{tt.store}
		r, err := a.Reload(next)
		if err != nil || r.Passwords != tt.passwords || !slices.Equal(r.Restart, tt.restart) {
			t.Errorf("%s: %+v, %v; want %d passwords, %q", tt.store, r, err, tt.passwords, tt.restart)
		}
		if tt.passwords > 0 && !a.BesideStoreIs("two") {
			t.Errorf("%s: the worker IDs, the directory or the slots go on with the password of before", tt.store)
		}
	}
}
