package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var ctx = context.Background()

// needsRoot skips the test for other users. In CI it fails.
func needsRoot(t *testing.T) {
	t.Helper()
	switch {
	case os.Geteuid() == 0:
	case os.Getenv("CI") != "":
		t.Fatal("this test needs root")
	default:
		t.Skip("SKIPPED: this test needs root")
	}
}

// emptyRoot makes a folder in which dpkg knows no package. args are those that make dpkg work there:
// the root has no shell, so scripts of packages run outside of it, with DPKG_ROOT.
func emptyRoot(t *testing.T) (root string, args []string) {
	t.Helper()
	needsRoot(t)
	if _, err := exec.LookPath("dpkg"); err != nil && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: dpkg is not installed")
	}
	root = t.TempDir()
	for _, folder := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"status", "available"} {
		if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg", file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root, []string{"--root=" + root, "--force-script-chrootless"}
}

// TestPackage installs the Debian package in an empty root, runs what it installed, upgrades
// it, removes it and purges it.
func TestPackage(t *testing.T) {
	root, rooted := emptyRoot(t)
	dpkg := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "dpkg", append(slices.Clone(rooted), args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("dpkg %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	path := func(name string) string { return filepath.Join(root, name) }
	exists := func(name string, want bool) {
		t.Helper()
		if _, err := os.Lstat(path(name)); (err == nil) != want {
			t.Errorf("%s exists: %v, want %v", name, err == nil, want)
		}
	}

	dpkg("-i", built.debs[0])
	if status, err := os.ReadFile(path("var/lib/dpkg/status")); err != nil || !strings.Contains(string(status), "\nBugs: https://github.com/leaf-idgen/leaf/issues\n") {
		t.Errorf("the package does not say where to report a defect: %s, %v", status, err)
	}
	for _, name := range []string{"usr/bin/leaf", "usr/lib/systemd/system/leaf.service", "etc/leaf/leaf.yaml", "usr/share/doc/leaf/copyright"} {
		exists(name, true)
	}
	exists("etc/systemd/system/multi-user.target.wants/leaf.service", false)
	if out, err := exec.CommandContext(t.Context(), path("usr/bin/leaf"), "config", "check", "--config", path("etc/leaf/leaf.yaml")).CombinedOutput(); err != nil {
		t.Errorf("the configuration of the package: %v\n%s", err, out)
	}

	const edited = "data-dir: /var/lib/leaf\nlog: {level: warn}\n"
	if err := os.WriteFile(path("etc/leaf/leaf.yaml"), []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(path("var/lib/leaf"), 0o700); err != nil {
		t.Fatal(err)
	}
	dpkg("-i", built.upgraded)
	if shown, err := os.ReadFile(path("var/lib/dpkg/status")); err != nil || !strings.Contains(string(shown), "Version: 1.3.0") {
		t.Errorf("after the upgrade: %s, %v", shown, err)
	}
	if text, err := os.ReadFile(path("etc/leaf/leaf.yaml")); err != nil || string(text) != edited {
		t.Errorf("the upgrade changed the configuration to %q, %v", text, err)
	}

	dpkg("-r", "leaf")
	exists("usr/bin/leaf", false)
	exists("etc/leaf/leaf.yaml", true)
	if out := dpkg("-P", "leaf"); !strings.Contains(out, "/var/lib/leaf stays") {
		t.Errorf("purge says %s", out)
	}
	exists("etc/leaf/leaf.yaml", false)
	exists("var/lib/leaf", true)
}
