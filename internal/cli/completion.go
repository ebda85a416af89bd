package cli

import (
	"embed"
	"fmt"
)

//go:embed completion
var completionScripts embed.FS

type completionCmd struct {
	Shell string `arg:"" words:"bash,zsh,fish" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help implements kong.HelpProvider.
func (completionCmd) Help() string {
	return `Prints a script with which the shell completes commands, flags, their values, and the tags of the node that answers. Tags come from the node in the data directory, or from the one that --endpoint or LEAF_ENDPOINT names; when none answers, there are none.

  source <(leaf completion bash)                                    # in ~/.bashrc
  source <(leaf completion zsh)                                     # in ~/.zshrc, after compinit
  leaf completion fish > ~/.config/fish/completions/leaf.fish`
}

// Run prints the script.
func (c *completionCmd) Run(p Process) error {
	script, err := completionScripts.ReadFile("completion/leaf." + c.Shell)
	if err != nil {
		return fmt.Errorf("script of the shell: %w", err)
	}
	_, err = p.Stdout.Write(script)
	return err
}
