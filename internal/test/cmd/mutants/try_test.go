package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTry: a test that fails is a catch only if it passes without the mutant.
func TestTry(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example\n\ngo 1.24\n",
		"a/a.go": "package a\n\nfunc one() int { return 1 }\n",
		"a/a_test.go": `package a

import (
	"os"
	"testing"
)

func TestOne(t *testing.T) {
	if one() != 1 {
		t.Error(one())
	}
}

func TestPositive(t *testing.T) {
	if one() < 1 {
		t.Error(one())
	}
}

func TestNothingIsKept(t *testing.T) {
	if one() != 1 && os.Getenv("RAPID_NOFAILFILE") == "true" {
		t.Error("rapid writes no file")
	}
}

func TestBroken(t *testing.T) { t.Error("the server is missing") }
`,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	b := &bench{root: root}
	for _, tt := range []struct{ run, caught, err string }{
		{"TestOne", "TestOne", ""},
		{"TestPositive", "", ""},
		{"TestNothingIsKept", "TestNothingIsKept", ""},
		{"TestBroken", "TestBroken", "./a TestBroken fails without a mutant, too: TestBroken"},
		{"TestNone", "", "no test ran"},
	} {
		v := b.try(t.Context(), mutant{name: "two", file: "a/a.go", pkg: "./a", run: tt.run, old: "return 1", replacement: "return 2"})
		if v.test.caught != tt.caught || (v.err == nil) != (tt.err == "") || v.err != nil && !strings.Contains(v.err.Error(), tt.err) {
			t.Errorf("%s: caught %q, %v", tt.run, v.test.caught, v.err)
		}
	}
	v := b.try(t.Context(), mutant{name: "no code", file: "a/a.go", pkg: "./a", run: "TestOne", old: "return 1", replacement: "return"})
	if v.caught() || v.err == nil || !strings.Contains(v.err.Error(), "does not compile") {
		t.Errorf("%+v", v)
	}
}
