package main

import (
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

// TestCompose: docker compose understands the file.
func TestCompose(t *testing.T) {
	o, err := cli.NewProjectOptions([]string{filepath.Join(built.root, "deploy/compose/compose.yaml")}, cli.WithInterpolation(true))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"node-1", "node-2", "node-3", "schema", "prepare"} {
		s, err := p.GetService(name)
		if err != nil || !s.ReadOnly || len(s.CapDrop) != 1 || s.Image != "leaf" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s listens on %q", name, port.HostIP)
			}
		}
	}
}
