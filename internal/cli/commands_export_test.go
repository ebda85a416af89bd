package cli

import (
	"cmp"
	"slices"

	"github.com/alecthomas/kong"
)

// Command is a command with its flags.
type Command struct {
	Path  []string
	Args  []string // that it needs, each with a value that it can have
	Flags []CommandFlag
	JSON  bool // it prints JSON on demand
}

// CommandFlag is a flag with a value.
type CommandFlag struct {
	Name, Hint string
	Key        string // of the configuration, "" if it is none
	Required   bool
}

// Commands returns all commands that people type.
func Commands() (all []Command, err error) {
	parser, err := kong.New(newGrammar(nil), kong.Vars{"version": ""})
	if err != nil {
		return nil, err
	}
	var walk func(n *kong.Node, path []string)
	walk = func(n *kong.Node, path []string) {
		if n.Type == kong.CommandNode {
			path = append(slices.Clip(path), n.Name)
		}
		for _, child := range n.Children {
			walk(child, path)
		}
		if len(n.Children) > 0 || n.Hidden {
			return
		}
		c := Command{Path: path}
		for _, p := range n.Positional {
			if p.Required {
				c.Args = append(c.Args, cmp.Or(p.EnumSlice()[0], "1"))
			}
		}
		for _, group := range n.AllFlags(true) {
			for _, f := range group {
				c.JSON = c.JSON || f.Name == "json"
				if !f.IsBool() {
					c.Flags = append(c.Flags, CommandFlag{f.Name, f.Tag.PlaceHolder, f.Tag.Get("key"), f.Required})
				}
			}
		}
		all = append(all, c)
	}
	walk(parser.Model.Node, nil)
	return all, nil
}
