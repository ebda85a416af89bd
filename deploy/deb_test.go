package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestUpgradeDoesNotWaitForTheNode: a node that starts can be not ready for as long as its database is away, and the standby of a
// pair for as long as the other node serves. An upgrade that waited for it would never end, above all where the same apt has
// stopped the database, which it starts after this package.
func TestUpgradeDoesNotWaitForTheNode(t *testing.T) {
	t.Parallel()
	timeout := server.Program(t, "timeout", "coreutils")
	text, err := os.ReadFile("deb/postinst")
	if err != nil {
		t.Fatal(err)
	}
	upgrade := func(restart string, args ...string) (ran string, err error) {
		dir := t.TempDir()
		script := strings.Replace(string(text), "-d /run/systemd/system ", "-d "+dir+" ", 1)
		if script == string(text) {
			t.Fatal("the script does not ask whether systemd runs")
		}
		for name, body := range map[string]string{
			"systemctl": `echo "$*" >> ` + dir + `/ran; case "$1" in try-restart) ` + restart + ` ;; esac`,
			"timeout":   `shift; exec ` + timeout + ` 0.1 "$@"`, // its time is over
			"postinst":  strings.TrimPrefix(script, "#!/bin/sh\n"),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
		}
		c := exec.CommandContext(t.Context(), filepath.Join(dir, "postinst"), args...)
		c.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		_, err = c.Output()
		lines, readErr := os.ReadFile(filepath.Join(dir, "ran"))
		if readErr != nil {
			t.Fatal(readErr)
		}
		return string(lines), err
	}
	for _, tt := range []struct {
		name, restart string
		args          []string
		ran           string
		fails         bool
	}{
		{"new", "exit 1", []string{"configure", ""}, "daemon-reload\n", false},
		{"ready", "", []string{"configure", "1.2.0"}, "daemon-reload\ntry-restart leaf.service\n", false},
		{"never ready", "sleep 10; echo waited >> ${0%/*}/ran", []string{"configure", "1.2.0"}, "daemon-reload\ntry-restart leaf.service\n", false},
		{"refused", "exit 1", []string{"configure", "1.2.0"}, "daemon-reload\ntry-restart leaf.service\n", true},
	} {
		ran, err := upgrade(tt.restart, tt.args...)
		if ran != tt.ran || (err != nil) != tt.fails {
			t.Errorf("%s: %v, and systemctl ran\n%s", tt.name, err, ran)
		}
	}
}
