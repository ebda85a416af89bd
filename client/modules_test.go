package client_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestModules: a program that imports the client compiles gRPC in, and no driver of a
// database or a registry.
func TestModules(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".", "./cache", "./check")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	want := []string{
		"github.com/leaf-idgen/leaf",
		"golang.org/x/net",
		"golang.org/x/sys",
		"golang.org/x/text",
		"google.golang.org/genproto/googleapis/rpc",
		"google.golang.org/grpc",
		"google.golang.org/protobuf",
	}
	if got := slices.Compact(modules); !slices.Equal(got, want) {
		t.Errorf("the client needs the modules %q, want %q", got, want)
	}
}
