package cli

import (
	"encoding/json"
	"runtime/debug"
)

// BuildJSON is what leaf version --json prints for a build.
func BuildJSON(info *debug.BuildInfo, tag, commit string) (string, error) {
	text, err := json.Marshal(buildOf(info, tag, commit))
	return string(text), err
}
