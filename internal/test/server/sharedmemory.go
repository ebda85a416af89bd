package server

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// freeSharedMemory frees the System V segment by which a killed PostgreSQL is
// recognised: 56 bytes, but a system has only some thousand of them. dir is the
// folder of a server, of a group, or of a process that started some.
//
// The segment's key and number are in line 7 of postmaster.pid, which only an
// orderly end removes. The key is compared too, and the segment must be unused:
// the folder of a dead process may be older than the last reboot.
func freeSharedMemory(dir string) {
	var pidFiles []string
	for _, nested := range []string{"", folderPrefix + "*"} {
		for _, member := range []string{"", nodePrefix + "*"} {
			found, _ := filepath.Glob(filepath.Join(dir, nested, member, "data", "postmaster.pid"))
			pidFiles = append(pidFiles, found...)
		}
	}
	for _, path := range pidFiles {
		text, _ := os.ReadFile(path)
		lines := strings.Split(string(text), "\n")
		if len(lines) >= 7 {
			freeSegment(strings.Fields(lines[6]))
		}
	}
}

// freeSegment removes the segment with this key and number if nobody uses it.
func freeSegment(keyAndNumber []string) {
	segments, _ := os.ReadFile("/proc/sysvipc/shm")
	for line := range strings.Lines(string(segments)) {
		// key, number, permissions, size, creator, last user, attached, ...
		f := strings.Fields(line)
		if len(f) > 7 && slices.Equal(f[:2], keyAndNumber) && f[6] == "0" {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_ = exec.CommandContext(ctx, "ipcrm", "-m", f[1]).Run()
			cancel()
		}
	}
}
