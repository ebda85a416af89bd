package config_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"
)

// TestFiles names every file that a configuration is read from, those of a new key included.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) string {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path(name)
	}
	put("token", "one")
	put("store", "mysql://u:p@h/db")
	yaml := put("leaf.yaml", "store-file: "+path("store")+"\nauth:\n  token-file: "+path("token")+"\n  named: file:"+path("named")+
		"\ntls:\n  cert: "+path("cert.pem")+"\n  key: "+path("key.pem")+"\n  client-ca: "+path("clients.pem")+"\nopaque:\n  keys: "+path("opaque")+"\norder:\n  ca: "+path("nodes.pem")+"\n")
	l, err := config.Load(config.Input{File: yaml, Environ: home})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range config.Keys() {
		if k.Hint == "FILE" && !k.Command && !strings.HasSuffix(k.Name, "-file") && !l.IsSet(k.Name) {
			t.Errorf("%s is not set", k.Name)
		}
	}
	// Certificates of databases, which Load would read.
	l.Stores = []string{"a=mysql://u:p@h/db?tls=true&tls-ca=" + path("ca.pem")}
	l.Snowflake.Registry, l.Snowflake.Addresses = "sql", []string{"postgres://u:p@h/db?sslmode=verify-full&sslrootcert=" + path("root.pem") + "&sslcert=" + path("client.pem") + "&sslkey=" + path("client.key")}
	want := []string{"ca.pem", "cert.pem", "client.key", "client.pem", "clients.pem", "key.pem", "leaf.yaml", "nodes.pem", "opaque", "root.pem", "store", "token"}
	var got []string
	for _, file := range slices.Sorted(maps.Keys(l.Files())) {
		got = append(got, filepath.Base(file))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// A file that has changed since it was read is shown as it was read.
	put("token", "another one")
	if info := l.Files()[path("token")]; info == nil || info.Size() != int64(len("one")) {
		t.Errorf("the file of the token: %v", info)
	}
	if info, known := l.Files()[path("opaque")]; info != nil || !known {
		t.Errorf("a file that is not there: %v", info)
	}
}
