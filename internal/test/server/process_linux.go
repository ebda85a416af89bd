package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// dieWithParent asks for SIGKILL rather than a politer signal, because only it
// ends a server that is stopped by SIGSTOP. Both servers recover from it.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// children returns the process IDs of the direct children of pid.
func children(pid int) []int {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	var found []int
	for _, folder := range folders {
		child, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		if _, parent := stat(child); parent == pid {
			found = append(found, child)
		}
	}
	return found
}

// stopped reports whether pid is stopped by a signal, or dead.
func stopped(pid int) bool {
	state, _ := stat(pid)
	return state == "T" || gone(pid)
}

// gone reports whether pid has ended; one that nobody has waited for counts.
func gone(pid int) bool {
	state, _ := stat(pid)
	return state == "" || state == "Z" || state == "X"
}

// stat returns the state of a process and the ID of its parent, an empty state
// if there is no such process.
func stat(pid int) (state string, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	// "17 (name, which may hold anything) S 1 ...": both follow the last
	// parenthesis.
	if _, err := fmt.Sscan(string(text[bytes.LastIndexByte(text, ')')+1:]), &state, &parent); err != nil {
		return "", 0
	}
	return state, parent
}
