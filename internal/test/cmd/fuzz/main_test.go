package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestRun on a copy of a module, because go test writes into it.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and fuzzes four targets")
	}
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/module")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, packages string
		code           int
		want           []string // regular expressions
		not            string
	}{
		{"all well", "./good", 0, []string{
			`(?m)^== 1 of 2: module/good FuzzGood for 1s; about 2s left$`,
			`(?m)^== 2 of 2: module/good FuzzFine for 1s; about 1s left$`,
			`(?m)^FUZZ: 2 targets, 0 failed, [0-9ms]+$`,
		}, "FAILED"},
		{"a failure ends nothing", "./bad", 1, []string{
			`(?m)^== 2 of 2: module/bad FuzzSeed`,
			`(?m)^FUZZ: 2 targets, 2 failed`,
			`(?m)^FAILED module/bad FuzzBad: see bad/testdata/fuzz/FuzzBad/[0-9a-f]{16}$`,
			`(?m)^FAILED module/bad FuzzSeed: no new input, see above$`,
		}, "FAILED module/good"},
		{"nothing to run", "./none", 2, []string{`fuzz: no targets: go list: .*none`}, "=="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			r := runner{dir: dir, out: &out, parallel: 1}
			if got := r.run(t.Context(), []string{tt.packages}, 2*time.Second, 0); got != tt.code {
				t.Errorf("exit code %d, want %d", got, tt.code)
			}
			for _, want := range tt.want {
				if !regexp.MustCompile(want).MatchString(out.String()) {
					t.Errorf("no match for %s", want)
				}
			}
			if strings.Contains(out.String(), tt.not) {
				t.Errorf("%q is there", tt.not)
			}
			if t.Failed() {
				t.Logf("output:\n%s", &out)
			}
		})
	}
}

// TestEnds: a Ctrl-C ends the target that runs, and no other one begins.
func TestEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and fuzzes a target")
	}
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/module")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out := &trigger{text: "execs:", call: cancel}
	r := runner{dir: dir, out: out, parallel: 1}
	if got := r.run(ctx, []string{"./good"}, 0, time.Hour); got != 1 {
		t.Errorf("exit code %d, want 1", got)
	}
	if !strings.Contains(out.String(), "stopped after 1 of 2 targets") {
		t.Errorf("output:\n%s", out)
	}
}

// trigger calls once its text was written.
type trigger struct {
	bytes.Buffer

	text string
	call func()
}

func (w *trigger) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.call()
	}
	return w.Buffer.Write(p)
}

// TestFindsOurs: the targets of this repository, by a few that must be among them.
func TestFindsOurs(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	found, err := runner{dir: root}.targets(t.Context(), []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range found {
		names[strings.TrimPrefix(f.pkg, "github.com/leaf-idgen/leaf/")+" "+f.name] = true
	}
	for _, want := range []string{"segment FuzzFenceFile", "snowflake FuzzParseLayout", "internal/config FuzzYAML", "internal/server/httpd FuzzHead"} {
		if !names[want] {
			t.Errorf("%s is not found", want)
		}
	}
}
