package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the version.
func (c *versionCmd) Run(p Process) error {
	if c.JSON {
		return json.NewEncoder(p.Stdout).Encode(map[string]string{"version": version(), "go": runtime.Version()})
	}
	_, err := fmt.Fprintln(p.Stdout, versionText())
	return err
}

func versionText() string { return fmt.Sprintf("leaf %s %s", version(), runtime.Version()) }

// version returns the module version that was built, with its commit if the build
// knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	return v
}
