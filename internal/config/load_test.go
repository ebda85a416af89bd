package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/snowflake"
)

// write puts text into a new file of that name and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var home = []string{"HOME=/home/me"}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	const yaml = "http:\n  addr: 127.0.0.1:1001\nsegment: {max-wait: 11ms, fixed-step: true}\nstore: [a=sqlite:1, b=sqlite:2]\n"
	flag := map[string][]string{"http.addr": {"127.0.0.1:1003"}}
	env := append([]string{"LEAF_HTTP_ADDR=127.0.0.1:1002", "LEAF_SEGMENT_MAX_WAIT=12ms"}, home...)
	cases := []struct {
		name   string
		in     config.Input
		addr   string
		wait   time.Duration
		stores int
		source string // of http.addr
	}{
		{"default", config.Input{Environ: home}, "127.0.0.1:8080", time.Second, 0, "default"},
		{"file", config.Input{Environ: home, File: write(t, "leaf.yaml", yaml)}, "127.0.0.1:1001", 11 * time.Millisecond, 2, "leaf.yaml:2"},
		{"env over file", config.Input{Environ: env, File: write(t, "leaf.yml", yaml)}, "127.0.0.1:1002", 12 * time.Millisecond, 2, "LEAF_HTTP_ADDR"},
		{"flag over env over file", config.Input{Environ: env, File: write(t, "leaf.yaml", yaml), Flags: flag}, "127.0.0.1:1003", 12 * time.Millisecond, 2, "--http-addr"},
		{"flag over default", config.Input{Environ: home, Flags: flag}, "127.0.0.1:1003", time.Second, 0, "--http-addr"},
		{"empty variable is not set", config.Input{Environ: append([]string{"LEAF_HTTP_ADDR="}, home...), File: write(t, "leaf.yaml", yaml)}, "127.0.0.1:1001", 11 * time.Millisecond, 2, "leaf.yaml:2"},
		{"file named by LEAF_CONFIG", config.Input{Environ: append([]string{"LEAF_CONFIG=" + write(t, "leaf.yaml", yaml)}, home...)}, "127.0.0.1:1001", 11 * time.Millisecond, 2, "leaf.yaml:2"},
		{"--config over LEAF_CONFIG", config.Input{Environ: append([]string{"LEAF_CONFIG=/nowhere.yaml"}, home...), File: write(t, "leaf.yaml", yaml)}, "127.0.0.1:1001", 11 * time.Millisecond, 2, "leaf.yaml:2"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l, err := config.Load(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if l.HTTP.Addr != tc.addr || l.Segment.MaxWait != tc.wait || len(l.Stores) != tc.stores {
				t.Errorf("got addr %s, wait %s, %d stores; want %s, %s, %d", l.HTTP.Addr, l.Segment.MaxWait, len(l.Stores), tc.addr, tc.wait, tc.stores)
			}
			for _, s := range l.Settings() {
				if s.Key == "http.addr" && s.Source != tc.source {
					t.Errorf("source of http.addr: got %s, want %s", s.Source, tc.source)
				}
			}
		})
	}
}

func TestListFromABetterSourceReplacesTheWholeList(t *testing.T) {
	t.Parallel()
	l, err := config.Load(config.Input{
		Environ: append([]string{"LEAF_STORE=a=sqlite:1; b=mysql://h/d,e"}, home...),
		File:    write(t, "leaf.yaml", "store:\n- x=sqlite:3\n- y=sqlite:4\n- z=sqlite:5\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a=sqlite:1", "b=mysql://h/d,e"}, l.Stores); diff != "" {
		t.Error(diff)
	}
}

func TestDataDirDefault(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		environ []string
		want    string
	}{
		{"home", home, "/home/me/.local/share/leaf"},
		{"XDG", []string{"HOME=/home/me", "XDG_DATA_HOME=/data"}, "/data/leaf"},
		{"relative XDG does not count", []string{"HOME=/home/me", "XDG_DATA_HOME=data"}, "/home/me/.local/share/leaf"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l, err := config.Load(config.Input{Environ: tc.environ})
			if err != nil {
				t.Fatal(err)
			}
			if l.DataDir != tc.want {
				t.Errorf("got %s, want %s", l.DataDir, tc.want)
			}
		})
	}
	if _, err := config.Load(config.Input{}); err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("no home: got %v", err)
	}
}

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	flags := func(pairs ...string) map[string][]string {
		m := map[string][]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = append(m[pairs[i]], pairs[i+1])
		}
		return m
	}
	prefixes := append(sqldb.Prefixes(), "etcd://", "etcds://")
	last := len(prefixes) - 1
	schemes := strings.Join(prefixes[:last], ", ") + " or " + prefixes[last]
	keys := config.Keys()
	registries := keys[slices.IndexFunc(keys, func(k config.Key) bool { return k.Name == "snowflake.registry" })].Limit
	cases := []struct {
		name  string
		yaml  string
		env   string
		flags map[string][]string
		want  string // the whole text
	}{
		// unknown keys
		{name: "unknown YAML key", yaml: "htp: {addr: x}", want: `htp (leaf.yaml:1): unknown key; did you mean http?`},
		{name: "unknown key in a section", yaml: "http:\n  adr: x", want: `http.adr (leaf.yaml:2): unknown key; did you mean http.addr?`},
		{name: "unknown key far from all", yaml: "zzzzzzzzzzzz: 1", want: `zzzzzzzzzzzz (leaf.yaml:1): unknown key`},
		{name: "dotted key", yaml: "http.addr: 127.0.0.1:80", want: `http.addr (leaf.yaml:1): write it as a section: http: {addr: …}`},
		{name: "unknown variable", env: "LEAF_HTTP_ADR=x", want: `LEAF_HTTP_ADR: unknown environment variable; did you mean LEAF_HTTP_ADDR?`},
		{name: "retired YAML key", yaml: "snowflake: {local-extend: true}", want: `snowflake.local-extend (leaf.yaml:1): is no longer a key; a longer snowflake.horizon does its job: IDs go on for that long while the registry is down`},
		{name: "retired variable", env: "LEAF_SNOWFLAKE_LOCAL_EXTEND=true", want: `LEAF_SNOWFLAKE_LOCAL_EXTEND: is no longer a key; a longer snowflake.horizon does its job: IDs go on for that long while the registry is down`},
		{name: "renamed key", yaml: "segment: {give-back: false}", want: `segment.give-back (leaf.yaml:1): is no longer a key; its name is segment.return-unused`},
		{name: "variable like a service port", env: "LEAF_PORT=8080", want: `LEAF_PORT: unknown environment variable`},

		// bad values
		{name: "number", yaml: "http: {max-conns: many}", want: `http.max-conns="many" (leaf.yaml:1): must be a whole number, 1 to 1000000`},
		{name: "number with a fraction", env: "LEAF_HTTP_MAX_CONNS=1.5", want: `http.max-conns="1.5" (LEAF_HTTP_MAX_CONNS): must be a whole number, 1 to 1000000`},
		{name: "number too small", flags: flags("http.max-conns", "0"), want: `http.max-conns="0" (--http-max-conns): must be 1 to 1000000`},
		{name: "step too large", yaml: "segment: {max-step: 1073741825}", want: `segment.max-step="1073741825" (leaf.yaml:1): must be 1 to 1073741824`},
		{name: "duration without unit", yaml: "segment: {max-wait: 5}", want: `segment.max-wait="5" (leaf.yaml:1): must be a duration such as 250ms, 5s or 1m, 1ms to 1m`},
		{name: "duration too long", flags: flags("segment.max-wait", "61s"), want: `segment.max-wait="1m1s" (--segment-max-wait): must be 1ms to 1m`},
		{name: "negative duration", flags: flags("http.idle-timeout", "-1s"), want: `http.idle-timeout="-1s" (--http-idle-timeout): must be 1s to 1h`},
		{name: "boolean", yaml: "segment: {fixed-step: yes please}", want: `segment.fixed-step="yes please" (leaf.yaml:1): must be true or false`},
		{name: "word", env: "LEAF_LOG_LEVEL=loud", want: `log.level="loud" (LEAF_LOG_LEVEL): must be one of debug, info, warn, error`},
		{name: "empty", flags: flags("data-dir", ""), want: `data-dir (--data-dir): must not be empty; leave it out for the default`},
		{name: "address without port", flags: flags("http.addr", "localhost"), want: `http.addr="localhost" (--http-addr): must be HOST:PORT with a port from 0 to 65535; an IPv6 host stands in brackets: [::1]:8080`},
		{name: "port too large", flags: flags("http.addr", ":65536"), want: `http.addr=":65536" (--http-addr): must be HOST:PORT with a port from 0 to 65535; an IPv6 host stands in brackets: [::1]:8080`},
		{name: "bad value below a better source", yaml: "http: {max-conns: 0}", flags: flags("http.max-conns", "7"), want: `http.max-conns="0" (leaf.yaml:1): must be 1 to 1000000`},
		{name: "flag given twice", flags: flags("http.addr", ":1", "http.addr", ":2"), want: `http.addr=":1;:2" (--http-addr): must be given once`},

		// YAML
		{name: "duplicate key", yaml: "data-dir: /a\nstore: sqlite:x\ndata-dir: /b", want: `data-dir (leaf.yaml:3): is set twice, first on line 1`},
		{name: "duplicate section", yaml: "http: {addr: '127.0.0.1:1'}\nhttp: {max-conns: 1}", want: `http (leaf.yaml:2): is set twice, first on line 1`},
		{name: "no value", yaml: "data-dir:", want: `data-dir (leaf.yaml:1): has no value; remove the line for the default`},
		{name: "section with a value", yaml: "http: 8080", want: `http (leaf.yaml:1): is a section: write its keys below it, indented`},
		{name: "list for one value", yaml: "data-dir: [a, b]", want: `data-dir (leaf.yaml:1): must be one plain value`},
		{name: "mapping for a list", yaml: "store: {a: b}", want: `store (leaf.yaml:1): must be one value or a list of values`},
		{name: "list of lists", yaml: "store: [[a]]", want: `store (leaf.yaml:1): must be a list of plain values`},
		{name: "alias", yaml: "log: {level: &a info, format: *a}", want: `log.format (leaf.yaml:1): aliases are not supported; write the value out`},
		{name: "top level is a list", yaml: "- a", want: `leaf.yaml:1: must be a mapping of keys to values`},
		{name: "two documents", yaml: "data-dir: /a\n---\ndata-dir: /b", want: `leaf.yaml:2: must hold one document`},
		{name: "complex key", yaml: "? [a]\n: b", want: `leaf.yaml:1: a key must be a plain word`},
		{name: "not YAML", yaml: "data-dir: /a\n\tx", want: `leaf.yaml:2: not valid YAML: found a tab character that violates indentation`},

		// combinations
		{name: "no mode", flags: flags("segment.enable", "false", "snowflake.enable", "false"), want: `segment.enable="false" (--segment-enable): leaves no mode to serve, because snowflake.enable=false as well`},
		{name: "connect timeout above load timeout", flags: flags("store-connect-timeout", "3s"), want: `store-connect-timeout="3s" (--store-connect-timeout): must not be above segment.load-timeout=2s`},
		{name: "shutdown below load timeout", flags: flags("shutdown-timeout", "1s"), want: `shutdown-timeout="1s" (--shutdown-timeout): must not be below segment.load-timeout=2s, or no unused ID is returned to a slow database`},

		// snowflake mode
		{name: "layout", flags: flags("snowflake.layout", "lief"), want: `snowflake.layout="lief" (--snowflake-layout): layout="lief": must be one of ` + strings.Join(snowflake.Presets(), ", ") + `, or a list of epoch=, unit=, time=, datacenter=, worker=, sequence=`},
		{name: "layout too wide", flags: flags("snowflake.layout", "leaf,worker=11"), want: `snowflake.layout="leaf,worker=11" (--snowflake-layout): time+datacenter+worker+sequence=64: must be at most 63 bits`},
		{name: "datacentre without a field", flags: flags("snowflake.datacenter", "1"), want: `snowflake.datacenter="1" (--snowflake-datacenter): must not be set: the layout leaf has no such field`},
		{name: "no datacentre", flags: flags("snowflake.layout", "dc"), want: `snowflake.datacenter="-1": must be 0 to 31 in the layout dc, another one in each datacentre`},
		{name: "datacentre too large", flags: flags("snowflake.layout", "dc", "snowflake.datacenter", "32"), want: `snowflake.datacenter="32" (--snowflake-datacenter): must be 0 to 31 in the layout dc, another one in each datacentre`},
		{name: "worker range", flags: flags("snowflake.worker-range", "512-1024"), want: `snowflake.worker-range="512-1024" (--snowflake-worker-range): must be FIRST-LAST within 0-1023, the workers of the layout`},
		{name: "worker range backwards", flags: flags("snowflake.worker-range", "9-8"), want: `snowflake.worker-range="9-8" (--snowflake-worker-range): must be FIRST-LAST within 0-1023, the workers of the layout`},
		{name: "further layout", flags: flags("snowflake.layouts", "js53,worker=7"), want: `snowflake.layouts="js53,worker=7" (--snowflake-layouts): time+datacenter+worker+sequence=54: must be at most 53 bits with js53, so that JavaScript reads every ID exactly; without the name js53, wider fields are possible`},
		{name: "further layout without datacentres", flags: flags("snowflake.layout", "dc", "snowflake.datacenter", "1", "snowflake.layouts", "js53"), want: `snowflake.layouts="js53" (--snowflake-layouts): layouts="js53": must have the field datacenter if and only if the layout has it (5 bits): without it, datacentres repeat the IDs of one another`},
		{name: "further layout of few datacentres", flags: flags("snowflake.layout", "dc", "snowflake.datacenter", "31", "snowflake.layouts", "dc,datacenter=4"), want: `snowflake.datacenter="31" (--snowflake-datacenter): must be 0 to 15 in the layout dc,datacenter=4`},
		{name: "worker range of a further layout", flags: flags("snowflake.layouts", "js53", "snowflake.worker-range", "0-64"), want: `snowflake.worker-range="0-64" (--snowflake-worker-range): must be FIRST-LAST within 0-63, the workers of the layout js53`},
		{name: "worker ID of a further layout", flags: flags("snowflake.layouts", "js53", "snowflake.registry", "static", "snowflake.worker-id", "64"), want: `snowflake.worker-id="64" (--snowflake-worker-id): must be a worker ID within 0-63, the workers of the layout js53`},
		{name: "address", flags: flags("snowflake.address", "db.example.com:8080"), want: `snowflake.address="db.example.com:8080" (--snowflake-address): must be IP:PORT, IP or :PORT, with a port from 1 to 65535; an IPv6 address with a port stands in brackets: [2001:db8::1]:8080`},
		{name: "interface", flags: flags("snowflake.interface", "en["), want: `snowflake.interface="en[" (--snowflake-interface): must be a name, or a pattern such as en*`},
		{name: "name", flags: flags("snowflake.name", "a/b"), want: `snowflake.name="a/b" (--snowflake-name): must have 1 to 64 printable characters without slash`},
		{name: "name of the folder above", flags: flags("snowflake.name", ".."), want: `snowflake.name=".." (--snowflake-name): must have 1 to 64 printable characters without slash`},
		{name: "name with a tab", flags: flags("snowflake.name", "a\tb"), want: `snowflake.name="a\tb" (--snowflake-name): must have 1 to 64 printable characters without slash`},
		{name: "name of 65 characters", flags: flags("snowflake.name", strings.Repeat("é", 65)), want: `snowflake.name="` + strings.Repeat("é", 65) + `" (--snowflake-name): must have 1 to 64 printable characters without slash`},
		{name: "namespace", flags: flags("snowflake.namespace", "prod eu"), want: `snowflake.namespace="prod eu" (--snowflake-namespace): must have 1 to 64 of letters, digits, '.', '_' and '-'`},
		{name: "horizon", flags: flags("snowflake.horizon", "5s"), want: `snowflake.horizon="5s" (--snowflake-horizon): must be 0, or at least 9s, three times snowflake.renew-interval`},
		{name: "lease", flags: flags("snowflake.renew-interval", "6s"), want: `snowflake.lease="15s": must be at least 18s, three times snowflake.renew-interval`},
		{name: "registry", flags: flags("snowflake.registry", "consul"), want: `snowflake.registry="consul" (--snowflake-registry): must be ` + registries},
		{name: "registry without servers", flags: flags("snowflake.registry", "etcd"), want: `snowflake.registry-address: must name the servers of snowflake.registry=etcd`},
		{name: "server without port", flags: flags("snowflake.registry", "etcd", "snowflake.registry-address", "http://u:hunter2@etcd"), want: `snowflake.registry-address="http://u:xxxxx@etcd" (--snowflake-registry-address): must be HOST:PORT, or a URL that begins with http:// or https://`},
		{name: "URL for ZooKeeper", flags: flags("snowflake.registry", "zookeeper", "snowflake.registry-address", "http://zk:2181"), want: `snowflake.registry-address="http://zk:2181" (--snowflake-registry-address): must be HOST:PORT of each server, with a /chroot at the end of the last one if there is one`},
		{name: "a chroot behind each server", flags: flags("snowflake.registry", "zookeeper", "snowflake.registry-address", "zk1:2181/ids", "snowflake.registry-address", "zk2:2181/ids"), want: `snowflake.registry-address="zk1:2181/ids;zk2:2181/ids" (--snowflake-registry-address): must be HOST:PORT of each server, with a /chroot at the end of the last one if there is one, and of no other. If nodes have run with this, they have their worker IDs from other registries, one for each order of the servers: stop all nodes and Java servers of these before you correct it for each, do not run leaf worker init, and start them when the longest horizon has passed, or later after a clock was ahead (docs/SNOWFLAKE.md#operating)`},
		{name: "cluster fence with a folder behind each server", flags: flags("segment.cluster-fence", "zookeeper://zk1:2181/ids,zk2:2181/ids"), want: `segment.cluster-fence="zookeeper://zk1:2181/ids,zk2:2181/ids" (--segment-cluster-fence): must be zookeeper://HOST:PORT,HOST:PORT/NAME or etcd://HOST:PORT,HOST:PORT/NAME (etcds:// with TLS)`},
		{name: "lease of etcd", flags: flags("snowflake.registry", "etcd", "snowflake.registry-address", "h:2379", "snowflake.lease", "15500ms"), want: `snowflake.lease="15.5s" (--snowflake-lease): must be at least 2s, in whole seconds, with etcd`},
		{name: "cluster fence", flags: flags("segment.cluster-fence", "redis://u:hunter2@h:1/x"), want: `segment.cluster-fence="redis://u:xxxxx@h:1/x" (--segment-cluster-fence): must be zookeeper://HOST:PORT,HOST:PORT/NAME or etcd://HOST:PORT,HOST:PORT/NAME (etcds:// with TLS)`},
		{name: "cluster fence without a name", flags: flags("segment.cluster-fence", "etcd://a:2379"), want: `segment.cluster-fence="etcd://a:2379" (--segment-cluster-fence): must be zookeeper://HOST:PORT,HOST:PORT/NAME or etcd://HOST:PORT,HOST:PORT/NAME (etcds:// with TLS)`},
		{name: "servers without need", flags: flags("snowflake.registry-address", "zk:2181"), want: `snowflake.registry-address="zk:2181" (--snowflake-registry-address): must not be set with snowflake.registry=auto`},
		{name: "static without a number", flags: flags("snowflake.registry", "static"), want: `snowflake.registry="static" (--snowflake-registry): needs one of snowflake.worker-id, snowflake.worker-map and snowflake.worker-from-hostname`},
		{name: "static with two", flags: flags("snowflake.registry", "static", "snowflake.worker-id", "1", "snowflake.worker-from-hostname", "true"), want: `snowflake.worker-from-hostname (--snowflake-worker-from-hostname): cannot stand beside snowflake.worker-id`},
		{name: "a number without static", flags: flags("snowflake.worker-id", "1"), want: `snowflake.worker-id (--snowflake-worker-id): is for snowflake.registry=static only`},
		{name: "worker ID", flags: flags("snowflake.registry", "static", "snowflake.worker-id", "1024"), want: `snowflake.worker-id="1024" (--snowflake-worker-id): must be a worker ID within 0-1023, the workers of the layout`},
		{name: "worker map", flags: flags("snowflake.registry", "static", "snowflake.worker-map", "10.0.0.1=1"), want: `snowflake.worker-map="10.0.0.1=1" (--snowflake-worker-map): must be IP:PORT=N`},
		{name: "worker map with an address twice", flags: flags("snowflake.registry", "static", "snowflake.worker-map", "10.0.0.1:1=1", "snowflake.worker-map", "10.0.0.1:1=2"), want: `snowflake.worker-map="10.0.0.1:1=2" (--snowflake-worker-map): repeats the address 10.0.0.1:1`},
		{name: "offset without host name", flags: flags("snowflake.worker-offset", "5"), want: `snowflake.worker-offset="5" (--snowflake-worker-offset): is for snowflake.worker-from-hostname only`},
		{name: "ephemeral port as identity", flags: flags("snowflake.registry", "zookeeper", "snowflake.registry-address", "zk:2181", "http.addr", ":0"), want: `snowflake.address: must name a port, because that of http.addr is another one after each start, and with zookeeper ip:port is the identity`},
		{name: "webhook", flags: flags("alarm.webhook", "ftp://u:hunter2@h/"), want: `alarm.webhook="ftp://h/xxxxx" (--alarm-webhook): must be a URL that begins with http:// or https://`},

		// stores
		{name: "store scheme", flags: flags("store", "oracle://h/d"), want: `store="oracle://h/d" (--store): must begin with ` + schemes},
		{name: "store without scheme hides the password", flags: flags("store", "root:hunter2@h/d"), want: `store="xxxxx@h/d" (--store): must begin with ` + schemes},
		{name: "several stores without names", flags: flags("store", "sqlite:a", "store", "sqlite:b"), want: `store="sqlite:a" (--store): needs a name, because there are several stores: NAME=URL, NAME of letters, digits, - and _` + "\n" +
			`store="sqlite:b" (--store): needs a name, because there are several stores: NAME=URL, NAME of letters, digits, - and _`},
		{name: "one store with a name", flags: flags("store", "a=sqlite:a"), want: `store="a=sqlite:a" (--store): must have no name, because it is the only store`},
		{name: "name twice", flags: flags("store", "a=sqlite:a", "store", "a=sqlite:b"), want: `store="a=sqlite:b" (--store): repeats the name a`},
		{name: "URL twice", flags: flags("store", "a=sqlite:a", "store", "b=sqlite:a"), want: `store="b=sqlite:a" (--store): repeats a database; two names for one database would issue its IDs twice`},
		{name: "etcd among several stores", flags: flags("store", "a=sqlite:a", "store", "b=etcd://u:hunter2@h:2379/n"), want: `store="b=etcd://u:xxxxx@h:2379/n" (--store): must be the only store: tags are divided between databases of SQL only`},
		{name: "etcd without a name", flags: flags("store", "etcd://u:hunter2@h:2379,i:2379"), want: `store="etcd://u:xxxxx@h:2379,i:2379" (--store): must be etcd://HOST:PORT,HOST:PORT/NAME (etcds:// with TLS)`},
		{name: "worker IDs in SQL and the store in etcd", flags: flags("store", "etcd://h:2379/n", "snowflake.registry", "sql"), want: `snowflake.registry="sql" (--snowflake-registry): needs snowflake.registry-address, because the store is in etcd and no database; auto has the worker IDs in etcd, too`},
		{name: "lease of a fraction beside a store in etcd", flags: flags("store", "etcds://h:2379,i:2379/n", "snowflake.lease", "9500ms"), want: `snowflake.lease="9.5s" (--snowflake-lease): must be at least 2s, in whole seconds, with etcd`},
		{name: "rule for one store", flags: flags("tag-rule", "order*=a"), want: `tag-rule="order*=a" (--tag-rule): makes sense only with several stores`},
		{name: "rule without name", flags: flags("store", "a=sqlite:a", "store", "b=sqlite:b", "tag-rule", "order*"), want: `tag-rule="order*" (--tag-rule): must be PATTERN=NAME, PATTERN an exact tag or a prefix that ends in *; or PATTERN=NAME,NAME*BLOCK with 16 databases at most, BLOCK from 1000 to 1073741824`},
		{name: "rule for two stores, one unknown", flags: flags("store", "a=sqlite:a", "store", "b=sqlite:b", "tag-rule", "order*=a,c*1000"), want: `tag-rule="order*=a,c*1000" (--tag-rule): names no store; the stores are a, b`},
		{name: "near an unknown store", flags: flags("store", "a=sqlite:a", "store", "b=sqlite:b", "segment.near", "c"), want: `segment.near="c" (--segment-near): must name a store, each one once; the stores are a, b`},
		{name: "near a store twice", flags: flags("store", "a=sqlite:a", "store", "b=sqlite:b", "segment.near", "a", "segment.near", "a"), want: `segment.near="a" (--segment-near): must name a store, each one once; the stores are a, b`},
		{name: "rule for an unknown store", flags: flags("store", "a=sqlite:a", "store", "b=sqlite:b", "tag-rule", "order*=c"), want: `tag-rule="order*=c" (--tag-rule): names no store; the stores are a, b`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			in := config.Input{Environ: home, Flags: tc.flags}
			if tc.yaml != "" {
				in.File = write(t, "leaf.yaml", tc.yaml)
			}
			if tc.env != "" {
				in.Environ = append([]string{tc.env}, home...)
			}
			_, err := config.Load(in)
			if err == nil {
				t.Fatal("no error")
			}
			if !errors.Is(err, leaf.ErrBadRequest) {
				t.Errorf("error does not match leaf.ErrBadRequest")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, path, want string }{
		{"missing", "/nowhere/leaf.yaml", "no such file"},
		{"wrong kind", write(t, "leaf.toml", ""), "must end in .yaml, .yml or .properties"},
		{"too large", write(t, "leaf.yaml", strings.Repeat("# x\n", 1<<19)), "must not have more than 1048576 bytes"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if _, err := config.Load(config.Input{Environ: home, File: tc.path}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.Input{
		Environ: append([]string{"LEAF_NOPE=1"}, home...),
		File:    write(t, "leaf.yaml", "htp: 1\nlog: {level: loud}\nshutdown-timeout: 1s"),
	})
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 4 {
		t.Errorf("got %q, want four lines", lines)
	}
}

func TestVariablesOfKubernetesAreIgnored(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.Input{Environ: append([]string{
		"LEAF_SERVICE_HOST=10.0.0.1", "LEAF_SERVICE_PORT=8080", "LEAF_SERVICE_PORT_HTTP=8080", "LEAF_PORT=tcp://10.0.0.1:8080",
		"LEAF_PORT_8080_TCP=tcp://10.0.0.1:8080", "LEAF_PORT_8080_TCP_PROTO=tcp", "LEAF_PORT_8080_TCP_PORT=8080", "LEAF_PORT_8080_TCP_ADDR=10.0.0.1",
		"LEAF_HTTP_SERVICE_HOST=10.0.0.1", "LEAF_HTTP_PORT=tcp://10.0.0.1:8080", "LEAF_TEST_MYSQL=x", "LEAF_LONG=1",
	}, home...)})
	if err != nil {
		t.Error(err)
	}
}

func TestEmptyFilesAreFine(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# only a comment\n", "---\n", "http:\n", "http: {}\nlog:\n"} {
		if _, err := config.Load(config.Input{Environ: home, File: write(t, "leaf.yaml", text)}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPasswordsAreHidden(t *testing.T) {
	t.Parallel()
	cases := []struct{ in, want string }{
		{"mysql://u:p@h:3306/d", "mysql://u:xxxxx@h:3306/d"},
		{"mysql://u:p@ss@h/d", "mysql://u:xxxxx@h/d"},
		{"mysql://u:p/w:x@h/d", "mysql://u:xxxxx@h/d"},
		{"a=postgres://u:p@h/d?sslmode=require", "a=postgres://u:xxxxx@h/d?sslmode=require"},
		{"postgres://u@h/d?password=p&x=1", "postgres://u@h/d?password=xxxxx&x=1"},
		{"mysql://u:p", "mysql://u:xxxxx"},
		{"u:p@h", "xxxxx@h"},
		{"mysql://h:3306/d", "mysql://h:3306/d"},
		{"etcd://a:2379,b:2379/n", "etcd://a:2379,b:2379/n"},
		{"etcd://u:p@a:2379,b:2379/n", "etcd://u:xxxxx@a:2379,b:2379/n"},
		{"http://u:p@a:2379", "http://u:xxxxx@a:2379"},
		{"zk1:2181,zk2:2181/ids", "zk1:2181,zk2:2181/ids"},
		{"mysql://[::1]:3306/d", "mysql://[::1]:3306/d"},
		{"sqlite:/a@b/leaf.db", "sqlite:/a@b/leaf.db"},
	}
	for _, tc := range cases {
		if got := config.Redact(tc.in); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.in, got, tc.want)
		}
	}
}

func TestSecretsOfSingleKeysAreHidden(t *testing.T) {
	t.Parallel()
	l, err := config.Load(config.Input{Environ: home, Flags: map[string][]string{
		"alarm.webhook": {"https://u:hunter2@hooks.example.com/services/hunter2?x=hunter2"}, "segment.cluster-fence": {"etcd://u:hunter2@a:2379/n"},
		"store-private": {"true"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range l.Settings() {
		got[s.Key] = strings.Join(s.Values, ";")
	}
	if got["alarm.webhook"] != "https://hooks.example.com/xxxxx" || got["segment.cluster-fence"] != "etcd://u:xxxxx@a:2379/n" {
		t.Errorf("got %s, %s", got["alarm.webhook"], got["segment.cluster-fence"])
	}
}

func TestKeysAreConsistent(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, k := range config.Keys() {
		for _, name := range []string{k.Flag(), k.Env()} {
			if other := seen[name]; other != "" {
				t.Errorf("%s and %s share the name %s", k.Name, other, name)
			}
			seen[name] = k.Name
		}
		if k.Help == "" || !strings.HasSuffix(k.Help, ".") {
			t.Errorf("%s: help text %q must be a sentence", k.Name, k.Help)
		}
		if k.Hint == "" {
			t.Errorf("%s: no hint for the value", k.Name)
		}
	}
	c := config.Default()
	c.DataDir = "/x"
	if err := c.Validate(); err != nil {
		t.Errorf("the defaults are not valid: %v", err)
	}
}

func FuzzYAML(f *testing.F) {
	for _, seed := range []string{
		"", "http: {addr: ':1'}", "store:\n- a\n- b\n", "a: &x [*x]", "? {a: b}\n: c", "- 1\n- 2", "data-dir: !!binary x", "<<: {a: b}", "\xff\xfe", "x: 'y", "---\n---\n",
	} {
		f.Add([]byte(seed))
	}
	known := map[string]bool{}
	for _, k := range config.Keys() {
		known[k.Name] = true
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		settings, err := config.ParseYAML(data)
		if err != nil && !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("error %v is not leaf.ErrBadRequest", err)
		}
		for name := range settings {
			if !known[name] {
				t.Errorf("set unknown key %q", name)
			}
		}
	})
}

// TestDataDirectoryAlone: what a node that runs is asked by is its data directory, also where that is the default and another key
// is wrong. Where the file that may name it cannot be read, none is guessed: the node there may be another one.
func TestDataDirectoryAlone(t *testing.T) {
	home := []string{"HOME=" + t.TempDir(), "XDG_DATA_HOME=" + t.TempDir(), "LocalAppData=" + t.TempDir()}
	whole, err := config.Load(config.Input{Environ: home})
	if err != nil {
		t.Fatal(err)
	}
	wrong := append([]string{"LEAF_SEGMENT_MAX_STEP=bad"}, home...)
	if l, err := config.LoadSome(config.Input{Environ: wrong}, "data-dir", "endpoint"); err != nil || l.DataDir != whole.DataDir {
		t.Errorf("got %q, %v; want %q", l.DataDir, err, whole.DataDir)
	}
	if l, err := config.LoadSome(config.Input{Environ: wrong, File: filepath.Join(t.TempDir(), "gone.yaml")}, "data-dir", "endpoint"); err == nil || l.DataDir != "" {
		t.Errorf("beside a file that cannot be read: got %q, %v", l.DataDir, err)
	}
}
