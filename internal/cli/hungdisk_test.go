package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/program"
)

// hangingSync replaces what opens the files of a data directory: a sync never returns once
// the file named by LEAF_TEST_HANG is there.
const hangingSync = `
type hanging struct{ *os.File }

func (h hanging) Sync() error {
	if _, err := os.Stat(os.Getenv("LEAF_TEST_HANG")); err == nil {
		select {}
	}
	return h.File.Sync()
}
`

// hangingProgram builds the program with it.
func hangingProgram(t *testing.T) (path string) {
	t.Helper()
	source, err := filepath.Abs("../../driver/datadir/system.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	const opened = "return f, nil\n"
	if bytes.Count(text, []byte(opened)) != 1 {
		t.Fatalf("%s has not one %q", source, opened)
	}
	text = append(bytes.Replace(text, []byte(opened), []byte("return hanging{f}, nil\n"), 1), hangingSync...)
	dir := t.TempDir()
	path, patched, overlay := filepath.Join(dir, "leaf"), filepath.Join(dir, "system.go"), filepath.Join(dir, "overlay.json")
	index, err := json.Marshal(map[string]map[string]string{"Replace": {source: patched}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{patched: text, overlay: index} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := program.Build(t.Context(), path, "-overlay", overlay); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestStopOnAHungDisk: a node whose disk hangs ends within shutdown-timeout all the same,
// with both modes, while requests wait for ranges that the fence file must hold first.
func TestStopOnAHungDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	program := hangingProgram(t)
	hang := filepath.Join(t.TempDir(), "hang")
	t.Setenv("LEAF_TEST_HANG", hang)
	const limit = 4 * time.Second
	dir := dataDir(t)
	p := serveAs(t, dir, program, "serve", "--data-dir", dir, "--http-addr", "127.0.0.1:0", "--shutdown-timeout", limit.String())
	if err := waitUntilServing(dir); err != nil {
		t.Fatalf("%v; log:\n%s", err, p.log)
	}
	p.ids(t, 5)
	if err := os.WriteFile(hang, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		go func() { _, _, _ = httpGet(p.addr, "/api/segment/get/leaf-segment-test?count=100000") }()
	}
	p.await(t, "the disk")
	begin := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.done:
		t.Log("ended with an error, because the disk holds its last words:", err)
	case <-time.After(limit + 3*time.Second): // a loaded machine is slow to end a process
		t.Errorf("the process runs %v after SIGTERM; log:\n%s", time.Since(begin), p.log)
	}
}
