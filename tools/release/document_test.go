package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// typed finds what the document says, in a comment, that an operator types into an editor.
var typed = regexp.MustCompile(`(?m)^(systemctl edit \S+|editor \S+)\s+# (.*)$`)

// TestDebianDocument runs the block of docs/OPERATIONS.md for Debian, in an empty root: apt checks
// the package, dpkg installs it, and systemd enables and reads the unit with what the operator adds.
// systemd does not run here, so that nothing starts.
func TestDebianDocument(t *testing.T) {
	root, dpkg := emptyRoot(t)
	block := fenced(t, "apt install")
	work := t.TempDir()
	commands := filepath.Join(work, "commands")
	if err := os.Mkdir(commands, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"apt":    `apt-get -qq --simulate "$@" && dpkg ` + strings.Join(dpkg, " ") + ` -i "$2"`,
		"editor": `grep -q . "$1" && echo "$TYPED" >> "$1"`,
		"systemctl": `case "$1" in
edit) mkdir -p $ROOT/etc/systemd/system/$2.service.d && echo "$TYPED" | tr ' ' '\n' > $ROOT/etc/systemd/system/$2.service.d/override.conf ;;
enable) test "$2" = --now && exec /usr/bin/systemctl --quiet --root=$ROOT enable "$3" ;;
status) ;;
*) exit 1 ;;
esac`,
	} {
		if err := os.WriteFile(filepath.Join(commands, name), []byte("#!/bin/sh\nset -e\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r, err := open(t.Context(), built.root, "v0.0.0") // as make release does
	if err != nil {
		t.Fatal(err)
	}
	r.stored = true
	release := filepath.Join(work, "bin", "release")
	if err := os.MkdirAll(release, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := r.debian(release, built.programs[0]); err != nil {
		t.Fatal(err)
	}

	script := typed.ReplaceAllString(block, "TYPED='$2' $1")
	if script == block || strings.Contains(script, "# [") {
		t.Fatalf("nothing is typed in\n%s", block)
	}
	script = regexp.MustCompile(` /etc/`).ReplaceAllString(script, " "+root+"/etc/")
	bash := exec.CommandContext(t.Context(), "bash", "-euc", script)
	bash.Dir = work
	bash.Env = append(os.Environ(), "PATH="+commands+":"+os.Getenv("PATH"), "ROOT="+root)
	if out, err := bash.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, script)
	}

	if _, err := os.Lstat(filepath.Join(root, "etc/systemd/system/multi-user.target.wants/leaf.service")); err != nil {
		t.Error(err)
	}
	credential := systemdReads(t, root)
	info, err := os.Stat(filepath.Join(root, credential.path))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file of the credential: %v, %v", info, err)
	}
	// What systemd does before it starts the node, and what the node reads then.
	file := filepath.Join(root, "etc/leaf/leaf.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Replace(string(text), "\nstore-file: /run/credentials/leaf.service/"+credential.id+"\n", "\nstore-file: "+filepath.Join(root, credential.path)+"\n", 1)
	if err := os.WriteFile(file, []byte(told), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "usr/bin/leaf"), "config", "check", "--config", file).CombinedOutput()
	if err != nil || told == string(text) || !strings.Contains(string(out), "mysql://user:xxxxx@host:3306/leaf") {
		t.Errorf("the node reads %q: %v\n%s", text, err, out)
	}
}

type credential struct{ id, path string }

// systemdReads returns the credential of the installed unit with its addition, both of which
// systemd must understand.
func systemdReads(t *testing.T, root string) credential {
	t.Helper()
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/leaf.service"))
	if err != nil {
		t.Fatal(err)
	}
	addition, err := os.ReadFile(filepath.Join(root, "etc/systemd/system/leaf.service.d/override.conf"))
	if err != nil {
		t.Fatal(err)
	}
	verify := func(addition string) string {
		folder := t.TempDir()
		if err := os.Mkdir(filepath.Join(folder, "leaf.service.d"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"leaf.service":                 strings.Replace(string(unit), "ExecStart=/usr/bin/leaf ", "ExecStart=/bin/true ", 1), // the program must exist
			"leaf.service.d/override.conf": addition,
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out, _ := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", filepath.Join(folder, "leaf.service")).CombinedOutput()
		return string(out)
	}
	if _, err := exec.LookPath("systemd-analyze"); err == nil || os.Getenv("CI") != "" {
		if out := verify(string(addition)); strings.Contains(out, "override.conf") {
			t.Errorf("systemd says of %q: %s", addition, out)
		}
		if out := verify(strings.Replace(string(addition), "=", "s=", 1)); !strings.Contains(out, "override.conf") {
			t.Errorf("systemd accepts a key that does not exist: %s", out)
		}
	}
	_, value, _ := strings.Cut(strings.TrimSpace(string(addition)), "\nLoadCredential=")
	id, path, ok := strings.Cut(value, ":")
	if !ok {
		t.Fatalf("no credential in %q", addition)
	}
	return credential{id, path}
}

// fenced returns the fenced block of docs/OPERATIONS.md in which a text stands.
func fenced(t *testing.T, text string) string {
	t.Helper()
	document, err := os.ReadFile(filepath.Join(built.root, "docs/OPERATIONS.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(document), "\n```") {
		if i%2 == 1 && strings.Contains(block, text) {
			return strings.TrimPrefix(block, "sh\n")
		}
	}
	t.Fatalf("no block of docs/OPERATIONS.md has %q", text)
	return ""
}
