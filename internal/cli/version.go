package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// tag and commit say what was built where Go cannot know it, because the sources were no git
// checkout: -ldflags "-X github.com/leaf-idgen/leaf/internal/cli.tag=v1.2.3". They win over
// what Go has recorded.
var tag, commit string

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the version.
func (c *versionCmd) Run(p Process) error {
	if c.JSON {
		return json.NewEncoder(p.Stdout).Encode(thisBuild())
	}
	_, err := fmt.Fprintln(p.Stdout, versionText())
	return err
}

// build is what a program was made from, and by which Go.
type build struct {
	Version  string `json:"version"` // the tag, or Go's name for the commit; +dirty: with changes that are in no commit
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"` // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// helpCmd is in the list of commands; run makes --help of it.
type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command. Without it, all commands are listed."`
}

// Run is there for the grammar.
func (helpCmd) Run() error { return nil }

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{Main: debug.Module{Version: "unknown"}}
	}
	return buildOf(info, tag, commit)
}

func buildOf(info *debug.BuildInfo, tag, commit string) build {
	recorded := make(map[string]string)
	for _, s := range info.Settings {
		recorded[s.Key] = s.Value
	}
	return build{
		Version:  cmp.Or(tag, info.Main.Version, "(devel)"),
		Commit:   cmp.Or(commit, recorded["vcs.revision"]),
		Time:     recorded["vcs.time"],
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

func versionText() string {
	b := thisBuild()
	text := "leaf " + b.Version
	if b.Commit != "" {
		text += " commit " + b.Commit[:min(12, len(b.Commit))]
	}
	return text + " " + b.Go + " " + b.Platform
}

// version returns the version of this build: its Git tag or its module version.
func version() string { return thisBuild().Version }
