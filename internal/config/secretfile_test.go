package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"
)

// TestSecretFiles reads the values of keys from files that other keys name.
func TestSecretFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tokens, store, empty := file("tokens", "old\n\n  new \r\n"), file("store", "mysql://u:p@h/db\n"), file("empty", "\n \n")
	yaml := file("leaf.yaml", "auth:\n  token-file: "+tokens+"\n")
	for _, tt := range []struct {
		name  string
		in    config.Input
		want  func(c *config.Loaded) bool
		fault string
	}{
		{"a flag, several values", config.Input{Flags: map[string][]string{"auth.token-file": {tokens}}}, func(c *config.Loaded) bool { return slices.Equal(c.Auth.Tokens, []string{"old", "new"}) }, ""},
		{"a variable", config.Input{Environ: []string{"LEAF_STORE_FILE=" + store}}, func(c *config.Loaded) bool { return slices.Equal(c.Stores, []string{"mysql://u:p@h/db"}) }, ""},
		{"the configuration file", config.Input{File: yaml}, func(c *config.Loaded) bool { return slices.Equal(c.Auth.Tokens, []string{"old", "new"}) }, ""},
		{"a better source wins", config.Input{File: yaml, Flags: map[string][]string{"auth.token": {"flag"}}}, func(c *config.Loaded) bool { return slices.Equal(c.Auth.Tokens, []string{"flag"}) }, ""},
		{"a better file wins", config.Input{Environ: []string{"LEAF_AUTH_TOKEN=env"}, Flags: map[string][]string{"auth.token-file": {tokens}}}, func(c *config.Loaded) bool { return len(c.Auth.Tokens) == 2 }, ""},
		{"both at once", config.Input{Flags: map[string][]string{"auth.token": {"a"}, "auth.token-file": {tokens}}}, nil, "must not be set together with auth.token"},
		{"no file", config.Input{Flags: map[string][]string{"admin.token-file": {filepath.Join(dir, "none")}}}, nil, "no such file"},
		{"an empty file", config.Input{Flags: map[string][]string{"admin.token-file": {empty}}}, nil, "must hold a value, and is empty"},
		{"two lines for one value", config.Input{Flags: map[string][]string{"alarm.webhook-file": {tokens}}}, nil, "must be given once"},
	} {
		tt.in.Environ = append(tt.in.Environ, "HOME=/home/me")
		l, err := config.Load(tt.in)
		switch {
		case tt.fault == "" && (err != nil || !tt.want(l)):
			t.Errorf("%s: %+v, %v", tt.name, l, err)
		case tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.fault)
		}
	}
}

// TestExposedSecrets has a note for each file with secrets that others may read.
func TestExposedSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, tt := range []struct {
		content string
		mode    os.FileMode
		want    bool
	}{
		{"store: mysql://u:secret@h/db\n", 0o644, true},
		{"store: mysql://u:secret@h/db\n", 0o640, true},
		{"store: mysql://u:secret@h/db\n", 0o600, false},
		{"store: mysql://h/db\n", 0o644, false},
		{"auth:\n  token: secret\n", 0o604, true},
		{"http:\n  addr: 127.0.0.1:1\n", 0o644, false},
	} {
		path := filepath.Join(dir, string(rune('a'+i))+".yaml")
		if err := os.WriteFile(path, []byte(tt.content), tt.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, tt.mode); err != nil {
			t.Fatal(err)
		}
		l, err := config.Load(config.Input{File: path, Environ: []string{"HOME=/home/me"}})
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(l.Warnings, "\n")
		if got := strings.Contains(notes, path+" holds secrets"); got != tt.want || strings.Contains(notes, "secret@") {
			t.Errorf("%q with mode %o: %q", tt.content, tt.mode, notes)
		}
	}
}

// TestExposedKeys has a note for a file of keys, or of a private key, that others may read.
func TestExposedKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string]map[string][]string{
		"opaque.keys": {"opaque.keys": {path}},
		"tls.key":     {"tls.key": {path}, "tls.cert": {"cert.pem"}},
	} {
		for mode, want := range map[os.FileMode]bool{0o600: false, 0o640: true} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			l, err := config.Load(config.Input{Flags: flags, Environ: []string{"HOME=/home/me"}})
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.ContainsFunc(l.Warnings, func(note string) bool { return strings.Contains(note, path+" holds secrets") }); got != want {
				t.Errorf("%s, mode %o: %q", name, mode, l.Warnings)
			}
		}
	}
}

// TestFileWarningsCanBeFollowed: to do what a warning says takes the file from no node that reads it, and there is
// none for the way in which Kubernetes and systemd give a node its secrets.
func TestFileWarningsCanBeFollowed(t *testing.T) {
	t.Parallel()
	const root, node, other = 0, 65532, 1000
	for _, tt := range []struct {
		what                string
		mode                os.FileMode
		user, group, reader int
		want                string
	}{
		{"the reader's own", 0o600, node, node, node, ""},
		{"the reader's own, for its group", 0o640, node, node, node, "run: chmod 600 F"},
		{"the reader's own, for all", 0o604, node, node, node, "run: chmod 600 F"},
		{"the Secret of a pod, or a credential of systemd", 0o440, root, node, node, ""},
		{"of another user, for the reader's group", 0o640, other, node, node, ""},
		{"of root, for all", 0o644, root, root, node, "run: chown USER F && chmod 600 F"},
		{"of root, for all, and root asks for a node", 0o644, root, root, root, "run: chown USER F && chmod 600 F"},
		{"of root, for the group of a node, and root asks for it", 0o640, root, node, root, ""},
		{"of root, for its group", 0o640, root, root, root, "run: chown USER F && chmod 600 F"},
		{"of a node, and root asks for it", 0o640, node, node, root, ""},
		{"of a node, for all, and root asks for it", 0o644, node, node, root, "run: chown USER F && chmod 600 F"},
	} {
		got := config.FileWarning("F", tt.mode, tt.user, tt.group, tt.reader)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}

// TestFileOfAGroup looks at a real file that root has given to the group of a node.
func TestFileOfAGroup(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	if err := os.WriteFile(path, nil, 0o440); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chown(path, 0, 65532), os.Chmod(path, 0o440)); err != nil {
		t.Skip("for root, on Unix: ", err)
	}
	if got := config.FileWarnings(path); got != nil {
		t.Error(got)
	}
}
