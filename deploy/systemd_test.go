package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// worstExposure is the exposure that systemd-analyze security accepts, times ten.
const worstExposure = "--threshold=20"

// analyze runs systemd-analyze.
func analyze(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	path := server.Program(t, "systemd-analyze", "systemd")
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	return string(out), err
}

// TestSystemdUnit: systemd understands every line of the unit, and its sandbox is as tight as it
// can be for a server on the network.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("systemd/leaf.service")
	if err != nil {
		t.Fatal(err)
	}
	const program = "ExecStart=/usr/bin/leaf "
	if !strings.Contains(string(unit), program) {
		t.Fatalf("the unit has no %s", program)
	}
	write := func(text string) (path string) {
		path = filepath.Join(t.TempDir(), "leaf.service")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := strings.Replace(string(unit), program, "ExecStart=/bin/true ", 1) // systemd wants the program to exist
	if out, err := analyze(t, "verify", "--man=no", write(text)); err != nil || strings.Contains(out, "leaf.service:") {
		t.Errorf("verify: %v\n%s", err, out)
	}
	if out, err := analyze(t, "security", "--offline=true", "--no-pager", worstExposure, write(text)); err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
	mistyped := strings.Replace(text, "ProtectHome=", "ProtectHomes=", 1)
	if out, _ := analyze(t, "verify", "--man=no", write(mistyped)); !strings.Contains(out, "leaf.service:") {
		t.Errorf("verify accepts a key that does not exist\n%s", out)
	}
	loose := strings.Replace(text, "SystemCallFilter=", "# ", 2)
	if out, err := analyze(t, "security", "--offline=true", "--no-pager", worstExposure, write(loose)); err == nil {
		t.Errorf("security accepts a unit that may make every system call\n%s", out)
	}
}

// TestSystemdConfiguration: the command of the unit, with the file of the package, is one that a
// node accepts, as it is and with the lines that it offers.
func TestSystemdConfiguration(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("systemd/leaf.yaml")
	if err != nil {
		t.Fatal(err)
	}
	offered := strings.NewReplacer("# store-file: /run/credentials/leaf.service/store", "store: mysql://leaf@db/leaf", "# http:", "http:", "#   addr", "  addr", "# auth: ", "auth: ", "#   open", "  open").Replace(string(text))
	for _, text := range []string{string(text), offered} {
		file := filepath.Join(t.TempDir(), "leaf.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := cli.Run(t.Context(), cli.Process{Args: []string{"config", "check", "--config", file}, Stdout: &out, Stderr: &errs}); code != 0 {
			t.Errorf("exit code %d, %s", code, errs.String())
		}
		if !strings.Contains(out.String(), "/var/lib/leaf") {
			t.Errorf("the data directory is another one:\n%s", out.String())
		}
	}
	if !strings.Contains(offered, "\n  addr: 0.0.0.0:8080") {
		t.Error("the file does not offer what this test adds")
	}
}
