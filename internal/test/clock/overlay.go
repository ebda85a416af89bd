package clock

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// offsetSource is what Overlay adds to package time; it is no part of this
// package.
//
//go:embed offset.go.txt
var offsetSource []byte

// Overlay writes into dir what "go build -overlay" needs to make the wall clock
// of the program movable, and returns the path of the file to name there. It is
// made from the sources of the Go that is on PATH, and fails if that has a
// time.Now which it does not know.
func Overlay(dir string) (path string, err error) {
	output, err := exec.Command("go", "env", "GOROOT").Output() //nolint:noctx // takes no longer than reading a file
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(output)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		return "", err
	}
	if text, err = patch(text); err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Join(source, "time.go"), err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	patched, added := filepath.Join(dir, "time.go"), filepath.Join(dir, "leaf_offset.go")
	index, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(source, "time.go"):        patched,
		filepath.Join(source, "leaf_offset.go"): added,
	}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, errors.Join(
		os.WriteFile(patched, text, 0o600),
		os.WriteFile(added, offsetSource, 0o600),
		os.WriteFile(path, index, 0o600),
	)
}

// The beginning of time.Now, and the same with the wall reading moved before
// anything is made of it.
const (
	original = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	moved    = original + "\tsec, nsec = leafMove(sec, nsec)\n"
)

// patch changes time.Now in the text of time.go.
func patch(text []byte) ([]byte, error) {
	if n := bytes.Count(text, []byte(original)); n != 1 {
		return nil, fmt.Errorf("time.Now does not begin as in Go 1.26: found %d times %q", n, original)
	}
	return bytes.Replace(text, []byte(original), []byte(moved), 1), nil
}
