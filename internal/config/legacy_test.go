package config_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/google/go-cmp/cmp"
)

func TestLegacyFile(t *testing.T) {
	t.Parallel()
	const jdbc = "leaf.jdbc.url=jdbc:mysql://db:3306/leaf\nleaf.jdbc.username=root\nleaf.jdbc.password=p@ss\n"
	const store = "mysql://root:p%40ss@db:3306/leaf"
	cases := []struct {
		name, text string
		store      string // expected; "" for an error
		want       string // text of the error, or of the notes
	}{
		{
			name: "as shipped, filled in", text: "leaf.name=com.sankuai.leaf.opensource.test\nleaf.segment.enable=true\n" + jdbc +
				"\nleaf.snowflake.enable=false\n#leaf.snowflake.zk.address=\n#leaf.snowflake.port=\n",
			store: store,
		},
		{name: "keys of snowflake mode are ignored", text: jdbc + "leaf.snowflake.enable=false\nleaf.snowflake.zk.address=zk:2181\nleaf.snowflake.mode=zk_recycle\nleaf.snowflake.local.workIdMap={}\nleaf.snowflake.port=8080", store: store, want: "leaf.snowflake.mode (leaf.properties:6) is ignored"},
		{name: "blank switch of snowflake mode is off, as in Java", text: jdbc + "leaf.snowflake.enable=\nleaf.snowflake.port=", store: store, want: "leaf.snowflake.port (leaf.properties:5) is ignored"},
		{name: "no word about snowflake mode", text: jdbc, store: store, want: "leaf.properties says nothing about snowflake mode, so it is off"},
		{name: "keys of others", text: jdbc + "server.port=8080", store: store, want: "server.port (leaf.properties:4) is not a key of Leaf and is ignored"},
		{name: "dropped parameter", text: "leaf.jdbc.url=jdbc:mysql://db/leaf?useUnicode=true", store: "mysql://db:3306/leaf", want: "leaf.jdbc.url (leaf.properties:1) has the parameter useUnicode"},
		{name: "blank user and password", text: "leaf.jdbc.url=jdbc:mysql://db/leaf\nleaf.jdbc.username=\nleaf.jdbc.password=  ", store: "mysql://db:3306/leaf"},

		{name: "no mode", text: jdbc + "leaf.segment.enable=false\nleaf.snowflake.enable=false", want: `segment.enable="false" (leaf.properties:4): leaves no mode to serve, because snowflake.enable=false as well`},
		{name: "switch", text: jdbc + "leaf.segment.enable=yes", want: `leaf.segment.enable="yes" (leaf.properties:4): must be true or false`},
		{name: "unknown key", text: jdbc + "leaf.segment.enabled=true", want: `leaf.segment.enabled (leaf.properties:4): unknown key; did you mean leaf.segment.enable?`},
		{name: "duplicate key", text: jdbc + "leaf.jdbc.username=me", want: `leaf.jdbc.username (leaf.properties:4): is set twice, first on line 2; the Java server takes the last one`},
		{name: "no database", text: "leaf.segment.enable=true\nleaf.jdbc.url=", want: `leaf.jdbc.url (leaf.properties): is missing or blank: it must name the database (or set --store)`},
		{name: "empty file", text: "", want: `leaf.jdbc.url (leaf.properties): is missing or blank: it must name the database (or set --store)`},
		{name: "unknown parameter", text: "leaf.jdbc.url=jdbc:mysql://u:hunter2@db/leaf?fancy=1", want: `leaf.jdbc.url="jdbc:mysql://u:xxxxx@db/leaf?fancy=1" (leaf.properties:1): parameter fancy is not known, and may lead to another database or schema; --store (LEAF_STORE) takes the place of this URL: name the database of the Java servers there, with its schema`},
		{name: "broken escape", text: `leaf.jdbc.url=\u12`, want: `leaf.jdbc.url (leaf.properties:1): \u must be followed by four hexadecimal digits`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l, err := config.Load(config.Input{Environ: home, File: write(t, "leaf.properties", tc.text)})
			if tc.store == "" {
				if err == nil || err.Error() != tc.want {
					t.Errorf("got  %v\nwant %s", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.store}, l.Stores); diff != "" {
				t.Error(diff)
			}
			if notes := strings.Join(l.Notes, "\n"); !strings.Contains(notes, tc.want) {
				t.Errorf("notes: got %q, want %q", notes, tc.want)
			}
		})
	}
}

// TestStoreInPlaceOfJavasURL: the error of a URL that is not understood says to name the database with --store.
func TestStoreInPlaceOfJavasURL(t *testing.T) {
	t.Parallel()
	const store = "postgres://u@db:5432/leaf?search_path=ids"
	in := config.Input{
		Environ: append(slices.Clone(home), "LEAF_STORE="+store),
		File:    write(t, "leaf.properties", "leaf.jdbc.url=jdbc:postgresql://db/leaf?options=-csearch_path=ids\nleaf.segment.enable=true\n"),
	}
	l, err := config.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{store}, l.Stores); diff != "" {
		t.Error(diff)
	}
}

func TestLegacySnowflake(t *testing.T) {
	t.Parallel()
	const (
		on   = "leaf.segment.enable=false\nleaf.snowflake.enable=true\n"
		name = "leaf.name=com.example.leaf\n"
		jdbc = "leaf.jdbc.url=jdbc:mysql://db:3306/leaf\n"
	)
	cases := []struct {
		name, text string
		want       map[string]string // keys, and "note"
		err        string
	}{
		{name: "the original", text: on + name + "leaf.snowflake.zk.address=zk1:2181, zk2/ids\nleaf.snowflake.port=8090", want: map[string]string{
			"snowflake.enable": "true", "snowflake.registry": "zookeeper", "snowflake.registry-address": "zk1:2181;zk2/ids",
			"snowflake.name": "com.example.leaf", "snowflake.address": ":8090", "segment.enable": "false",
		}},
		{name: "on by default, as in Java", text: jdbc + name + "leaf.snowflake.zk.address=zk:2181", want: map[string]string{
			"snowflake.enable": "true", "snowflake.registry": "zookeeper", "segment.enable": "true",
		}},
		{name: "a pool", text: on + name + "leaf.snowflake.mode=zk_recycle\nleaf.snowflake.zk.address=zk:2181", want: map[string]string{
			"snowflake.registry": "zookeeper-recycle", "note": "the fork's pool can give one worker ID to two nodes",
		}},
		{name: "the database", text: on + jdbc + "leaf.snowflake.mode=mysql\nleaf.snowflake.zk.address=zk:2181", want: map[string]string{
			"snowflake.registry": "sql", "store": "mysql://db:3306/leaf", "note": "leaf.snowflake.zk.address (leaf.properties:5) is ignored, because leaf.snowflake.mode=mysql",
		}},
		{name: "a map", text: on + `leaf.snowflake.mode=local` + "\n" + `leaf.snowflake.local.workIdMap={"10.1.46.33:8081":2,"10.1.46.33:8080":1}`, want: map[string]string{
			"snowflake.registry": "static", "snowflake.worker-map": "10.1.46.33:8080=1;10.1.46.33:8081=2",
			"note": "gives this node the worker ID of its ip:port: stop all nodes of the fork before, and wait for as long as docs/MIGRATION.md says, because each keeps the number of its first start, whatever the map says since",
		}},

		{name: "no servers", text: on + name + "leaf.snowflake.port=8080", err: "leaf.snowflake.zk.address (leaf.properties): is missing or blank: it must name the servers of ZooKeeper, HOST:PORT,HOST:PORT"},
		{name: "no name", text: on + "leaf.snowflake.zk.address=zk:2181", err: "leaf.name (leaf.properties): is missing: with ZooKeeper it is a part of the path. To the Java server it is then null: if Java servers have this file, too, or had it, write leaf.name=null. By another name this node has worker IDs that they have"},
		{name: "the name of Java servers without one", text: on + "leaf.name=null\nleaf.snowflake.zk.address=zk:2181", want: map[string]string{"snowflake.name": "null"}},
		{name: "a blank name", text: on + "leaf.name= \nleaf.snowflake.zk.address=zk:2181", err: "leaf.name (leaf.properties:3): is missing or blank: with ZooKeeper it is a part of the path"},
		{name: "a pool without a name", text: on + "leaf.snowflake.mode=zk_recycle\nleaf.snowflake.zk.address=zk:2181", err: "leaf.name (leaf.properties): is missing or blank: with ZooKeeper it is a part of the path"},
		{name: "a name of two folders", text: on + "leaf.name=shop/ids\nleaf.snowflake.zk.address=zk:2181", err: `leaf.name="shop/ids" (leaf.properties:3): must have 1 to 64 printable characters without slash, although the Java server takes more. By another name this node has worker IDs that Java servers with this one have. If other nodes of this cluster set snowflake.name (LEAF_SNOWFLAKE_NAME), set it to theirs, and change nothing else. Else stop all of these, set snowflake.name to one new name on all nodes, do not run leaf worker init, start the nodes when the longest horizon has passed, or later after a clock was ahead (docs/SNOWFLAKE.md#operating), and start no Java server by this name again.`},
		{name: "a long name", text: on + "leaf.name=" + strings.Repeat("x", 65) + "\nleaf.snowflake.zk.address=zk:2181", err: `must have 1 to 64 printable characters without slash, although the Java server takes more.`},
		{name: "a blank behind the name", text: on + "leaf.name=com.example.leaf \nleaf.snowflake.zk.address=zk:2181", err: `leaf.name="com.example.leaf" (leaf.properties:3): is "com.example.leaf " to the Java server, `},
		{name: "a name in UTF-8", text: on + "leaf.name=café\nleaf.snowflake.zk.address=zk:2181", err: `leaf.name="café" (leaf.properties:3): is "cafÃ©" to the Java server, `},
		{name: "a name behind a mark of UTF-8", text: "\uFEFFleaf.name=leaf\n" + on + "leaf.snowflake.zk.address=zk:2181", err: `leaf.name="leaf" (leaf.properties:1): is "null" to the Java server, which keeps blanks behind a name and reads no UTF-8: another path of ZooKeeper, where the worker IDs are the same. If other nodes of this cluster set snowflake.name (LEAF_SNOWFLAKE_NAME), set it to theirs, and change nothing else. While Java servers use that path, stop all nodes that have run with this file, set snowflake.name to that name on all of them, and leave the file as it is. If no Java server is left, leave the blank out, write each letter beyond ASCII as \uXXXX, and save the file without a mark of UTF-8 (BOM). In both cases start the nodes when the longest horizon has passed since the last stop, or later after a clock was ahead (docs/SNOWFLAKE.md#operating)`},
		{name: "a name with an escape", text: on + "leaf.name=caf\\u00e9\nleaf.snowflake.zk.address=zk:2181", want: map[string]string{"snowflake.name": "café"}},
		{name: "a name that Maven fills in", text: on + "leaf.name=shop-${project.artifactId}\nleaf.snowflake.zk.address=zk:2181", err: `leaf.name="shop-${project.artifactId}" (leaf.properties:3): has a placeholder, which the build of the Java server may fill in: `},
		{name: "a name that Spring's parent of Maven fills in", text: on + "leaf.name=@project.artifactId@\nleaf.snowflake.zk.address=zk:2181", err: `leaf.name="@project.artifactId@" (leaf.properties:3): has a placeholder, `},
		{name: "a name with one sign of a placeholder", text: on + "leaf.name=ids@shop\nleaf.snowflake.zk.address=zk:2181", want: map[string]string{"snowflake.name": "ids@shop"}},
		{name: "a name of a pool", text: on + "leaf.name=café \nleaf.snowflake.mode=zk_recycle\nleaf.snowflake.zk.address=zk:2181", want: map[string]string{"snowflake.name": "café"}},
		{name: "port", text: on + name + "leaf.snowflake.zk.address=zk:2181\nleaf.snowflake.port=eighty", err: `leaf.snowflake.port="eighty" (leaf.properties:5): must be a port from 1 to 65535`},
		{name: "unknown mode", text: on + "leaf.snowflake.mode=redis", err: `leaf.snowflake.mode="redis" (leaf.properties:3): must be zk_normal, zk_recycle, mysql or local`},
		{name: "no database", text: on + "leaf.snowflake.mode=mysql", err: `leaf.jdbc.url (leaf.properties): is missing or blank: it must name the database (or set --store)`},
		{name: "no map", text: on + "leaf.snowflake.mode=local", err: `leaf.snowflake.local.workIdMap (leaf.properties): must be a JSON object of ip:port and worker ID, such as {"10.1.46.33:8080":1}`},
		{name: "a number twice", text: on + `leaf.snowflake.mode=local` + "\n" + `leaf.snowflake.local.workIdMap={"10.1.46.33:8081":2,"10.1.46.33:8080":2}`, err: `snowflake.worker-map="10.1.46.33:8081=2" (leaf.properties:4): repeats the worker ID 2: two nodes would issue the same IDs`},
		{name: "a number too large", text: on + `leaf.snowflake.mode=local` + "\n" + `leaf.snowflake.local.workIdMap={"10.1.46.33:8081":1024}`, err: `snowflake.worker-map="10.1.46.33:8081=1024" (leaf.properties:4): must be a worker ID within 0-1023, the workers of the layout`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l, err := config.Load(config.Input{Environ: home, File: write(t, "leaf.properties", tc.text)})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got  %v\nwant %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{"note": strings.Join(l.Notes, "\n")}
			for _, s := range l.Settings() {
				got[s.Key] = strings.Join(s.Values, ";")
			}
			for key, want := range tc.want {
				if key == "note" && strings.Contains(got[key], want) || got[key] == want {
					continue
				}
				t.Errorf("%s: got %q, want %q", key, got[key], want)
			}
		})
	}
}

func TestLegacyFileBesideOtherSources(t *testing.T) {
	t.Parallel()
	file := write(t, "leaf.properties", "leaf.name=n\nleaf.segment.enable=true\n")
	l, err := config.Load(config.Input{Environ: home, File: file, Flags: map[string][]string{"store": {"mysql://h/d"}}})
	if err != nil {
		t.Fatal(err)
	}
	if l.Name != "n" || l.Stores[0] != "mysql://h/d" {
		t.Errorf("got name %q, stores %q", l.Name, l.Stores)
	}

	// The file of Java servers stays as it is where another source has the name: theirs with a blank at the end, or a new one.
	for _, tc := range []struct{ leafName, name string }{{"n ", "n "}, {"shop/ids", "ids"}} {
		file = write(t, "leaf.properties", "leaf.name="+tc.leafName+"\nleaf.segment.enable=false\nleaf.snowflake.enable=true\nleaf.snowflake.zk.address=zk:2181\n")
		l, err = config.Load(config.Input{Environ: append([]string{"LEAF_SNOWFLAKE_NAME=" + tc.name}, home...), File: file})
		if err != nil {
			t.Fatal(err)
		}
		if l.Snowflake.Name != tc.name || l.Snowflake.Registry != config.RegistryZooKeeper {
			t.Errorf("leaf.name=%s: got snowflake.name %q, registry %s; want %q, zookeeper", tc.leafName, l.Snowflake.Name, l.Snowflake.Registry, tc.name)
		}
	}
}

// TestLegacyFileForSegmentModeAlone: a node beside Java servers starts with their file where another source switches snowflake
// mode off, as the error of such a leaf.name and docs/MIGRATION.md say, whatever the file says of that mode.
func TestLegacyFileForSegmentModeAlone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"leaf.name=shop/ids\nleaf.snowflake.zk.address=zk:2181", "leaf.name=n \nleaf.snowflake.zk.address=zk:2181",
		"leaf.name=${name}\nleaf.snowflake.zk.address=zk:2181", "leaf.snowflake.zk.address=zk:2181", "leaf.name=n",
		"leaf.snowflake.mode=local", "leaf.snowflake.mode=redis", "leaf.snowflake.port=eighty",
	} {
		file := write(t, "leaf.properties", "leaf.snowflake.enable=true\nleaf.jdbc.url=jdbc:mysql://db:3306/leaf\n"+text)
		if _, err := config.Load(config.Input{Environ: home, File: file}); err == nil {
			t.Errorf("%q was taken with snowflake mode", text)
		}
		l, err := config.Load(config.Input{Environ: append([]string{"LEAF_SNOWFLAKE_ENABLE=false"}, home...), File: file})
		if err != nil {
			t.Errorf("without snowflake mode: %v", err)
		} else if l.Snowflake.Enable || !l.Segment.Enable {
			t.Errorf("%q: segment mode %v, snowflake mode %v; want the first one alone", text, l.Segment.Enable, l.Snowflake.Enable)
		}
	}
}

func TestJDBC(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, jdbc, user, password string
		want                       string // a store URL, or "error: " and a part of its text
	}{
		{"the usual one", "jdbc:mysql://127.0.0.1:3306/leaf_test?useUnicode=true&characterEncoding=utf8&characterSetResults=utf8", "root", "pw", "mysql://root:pw@127.0.0.1:3306/leaf_test"},
		{"default port", "jdbc:mysql://db/leaf", "root", "", "mysql://root@db:3306/leaf"},
		{"default host", "jdbc:mysql:///leaf", "", "", "mysql://localhost:3306/leaf"},
		{"special characters", "jdbc:mysql://db/leaf", "a:b", "p@/?#%;x", "mysql://a%3Ab:p%40%2F%3F%23%25;x@db:3306/leaf"},
		{"IPv6", "jdbc:mysql://[::1]:3307/leaf", "", "", "mysql://[::1]:3307/leaf"},
		{"MariaDB", "jdbc:mariadb://db:3306/leaf", "u", "p", "mysql://u:p@db:3306/leaf"},
		{"user in the URL", "jdbc:mysql://u:p%40@db/leaf", "", "", "mysql://u:p%40@db:3306/leaf"},
		{"user as parameter", "jdbc:mysql://db/leaf?user=u&password=p%26", "", "", "mysql://u:p&@db:3306/leaf"},
		{"keys win over the URL", "jdbc:mysql://x:y@db/leaf?user=z", "u", "p", "mysql://u:p@db:3306/leaf"},
		{"TLS off", "jdbc:mysql://db/leaf?useSSL=false", "", "", "mysql://db:3306/leaf?tls=false"},
		{"TLS on", "jdbc:mysql://db/leaf?useSSL=true", "", "", "mysql://db:3306/leaf?tls=true"},
		{"TLS not verified", "jdbc:mysql://db/leaf?useSSL=true&verifyServerCertificate=false", "", "", "mysql://db:3306/leaf?tls=skip-verify"},
		{"sslMode wins", "jdbc:mysql://db/leaf?useSSL=false&sslMode=VERIFY_IDENTITY", "", "", "mysql://db:3306/leaf?tls=true"},
		{"requireSSL alone means little", "jdbc:mysql://db/leaf?requireSSL=false", "", "", "mysql://db:3306/leaf"},
		{"case of parameters", "jdbc:mysql://db/leaf?USESSL=false&SERVERTIMEZONE=UTC", "", "", "mysql://db:3306/leaf?tls=false"},
		{"PostgreSQL", "jdbc:postgresql://db/leaf", "u", "p", "postgres://u:p@db:5432/leaf"},
		{"PostgreSQL short", "jdbc:postgresql:leaf", "u", "", "postgres://u@localhost:5432/leaf"},
		{"PostgreSQL database of the user", "jdbc:postgresql://db/", "u", "", "postgres://u@db:5432/u"},
		{"PostgreSQL TLS", "jdbc:postgresql://db/leaf?ssl=true", "", "", "postgres://db:5432/leaf?sslmode=verify-full"},
		{"PostgreSQL sslmode", "jdbc:postgresql://db/leaf?ssl=true&sslmode=require", "", "", "postgres://db:5432/leaf?sslmode=require"},

		{"several hosts", "jdbc:mysql://a:3306,b:3306/leaf", "", "", "error: names several hosts"},
		{"address form", "jdbc:mysql://address=(host=a)(port=1)/leaf", "", "", "error: names several hosts or uses the address=(…) form"},
		{"replication", "jdbc:mysql:replication://a,b/leaf", "", "", "error: is not one server"},
		{"unknown driver", "jdbc:oracle:thin:@h", "", "", `error: driver "oracle" is not supported`},
		{"not JDBC", "mysql://h/d", "", "", "error: must begin with jdbc:mysql://"},
		{"no database", "jdbc:mysql://db:3306", "", "", "error: names no database"},
		{"bad port", "jdbc:mysql://db:70000/leaf", "", "", `error: port "70000" must be 1 to 65535`},
		{"bad host", "jdbc:mysql://d b/leaf", "", "", `error: host "d b" is not valid`},
		{"unknown parameter", "jdbc:mysql://db/leaf?sessionVariables=x", "", "", "error: parameter sessionVariables is not known"},
		{"parameter twice", "jdbc:mysql://db/leaf?useSSL=true&usessl=false", "", "", "error: parameter usessl is given twice"},
		{"unknown sslMode", "jdbc:mysql://db/leaf?sslMode=maybe", "", "", `error: parameter sslMode has the unknown value "maybe"`},
		{"password without user", "jdbc:mysql://db/leaf", "", "p", "error: a password without a user name"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			store, _, err := config.TranslateJDBC(tc.jdbc, tc.user, tc.password)
			if want, isError := strings.CutPrefix(tc.want, "error: "); isError {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, %v; want an error with %q", store, err, want)
				}
				return
			}
			if err != nil || store != tc.want {
				t.Fatalf("got  %s, %v\nwant %s", store, err, tc.want)
			}
			u, err := url.Parse(store)
			if err != nil {
				t.Fatal(err)
			}
			if pw, _ := u.User.Password(); tc.password != "" && pw != tc.password {
				t.Errorf("password: got %q, want %q", pw, tc.password)
			}
		})
	}
}
