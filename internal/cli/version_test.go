package cli_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// TestVersionOfABuild: the version is the tag of the build, else what Go recorded.
func TestVersionOfABuild(t *testing.T) {
	t.Parallel()
	git := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-11-25T04:18:41Z"}}
	end := `"go":"` + runtime.Version() + `","platform":"` + runtime.GOOS + "/" + runtime.GOARCH + `"}`
	for _, tt := range []struct {
		name        string
		info        debug.BuildInfo
		tag, commit string
		want        string
	}{
		{"of a git checkout", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: git}, "", "", `{"version":"v1.2.3","commit":"0123456789abcdef","time":"2026-11-25T04:18:41Z",`},
		{"of an archive, with a tag", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "v1.2.3", "abc", `{"version":"v1.2.3","commit":"abc",`},
		{"of an archive", debug.BuildInfo{}, "", "", `{"version":"(devel)",`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := cli.BuildJSON(&tt.info, tt.tag, tt.commit)
			if err != nil || got != tt.want+end {
				t.Errorf("%s, %v, want %s", got, err, tt.want+end)
			}
		})
	}
}
