package cli

import (
	"fmt"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/config"
)

// warn tells the user of a command what it is good to know beside its result.
func (p Process) warn(text string) {
	fmt.Fprintf(p.Stderr, "leaf: warning: %s\n", config.RedactText(text))
}

// warnOfArguments warns of each flag of a command with a secret in its value, or with a file of
// secrets that other users may read. The node that leaf serve starts says so in its log, and leaf
// config check in its output.
func warnOfArguments(p Process, command *kong.Context) {
	switch command.Command() {
	case "serve", "config check":
		return
	}
	given, files := map[string][]string{}, []string{}
	for _, f := range command.Flags() {
		switch v := f.Target.Interface().(type) {
		case rawValue:
			given[f.Tag.Get("key")] = v.values
			if f.Tag.Has("secretfile") {
				files = append(files, v.values...)
			}
		case string:
			if f.Tag.Has("secretfile") {
				files = append(files, v)
			}
		case []string:
			if f.Tag.Has("secret") && slices.ContainsFunc(v, func(value string) bool { return config.Redact(value) != value }) {
				p.warn(config.ArgumentWarning(f.Name, ""))
			}
		}
	}
	for _, text := range append(config.ArgumentWarnings(given), config.FileWarnings(files...)...) {
		p.warn(text)
	}
}

// linesOf reads the values of a flag from the file that another one names.
func linesOf(flag, path string) ([]string, error) {
	lines, err := config.ReadSecret(path)
	if err != nil {
		return nil, leaf.BadField(flag, path, err.Error())
	}
	return lines, nil
}
