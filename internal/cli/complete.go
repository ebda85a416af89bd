package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// completeCmd is what the scripts of leaf completion call.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints how the last word can go on: "files" if it is a path, else "words" and then one
// word per line, with a tab before its description.
func (c *completeCmd) Run(ctx context.Context, p Process, k *kong.Context) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	done := completion{node: k.Model.Node, flags: map[string][]string{}}
	for _, word := range words[:len(words)-1] {
		done.step(word)
	}
	found := done.candidates(words[len(words)-1])
	if found.tags {
		found.words = tagWords(ctx, p, done.flags)
	}
	if found.files {
		_, err := fmt.Fprintln(p.Stdout, "files")
		return err
	}
	var out strings.Builder
	out.WriteString("words\n")
	for _, word := range found.words {
		text, _, _ := strings.Cut(word, "\t")
		if !strings.HasPrefix(text, found.typed) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
			continue
		}
		out.WriteString(found.before + word + "\n")
	}
	_, err := fmt.Fprint(p.Stdout, out.String())
	return err
}

// completion is what the words before the last one say.
type completion struct {
	node    *kong.Node
	args    int                 // positional arguments of node that are there
	literal bool                // after --, nothing is a flag
	waits   *kong.Flag          // its value comes next
	flags   map[string][]string // values by name of the flag
}

// step takes one word.
func (c *completion) step(word string) {
	switch {
	case c.waits != nil:
		c.flags[c.waits.Name] = append(c.flags[c.waits.Name], word)
		c.waits = nil
	case c.literal || !strings.HasPrefix(word, "-") || word == "-":
		for _, child := range c.node.Children {
			if child.Name == word {
				if word != "help" { // what follows it is a command again
					c.node, c.args = child, 0
				}
				return
			}
		}
		c.args++
	case word == "--":
		c.literal = true
	default:
		name, value, given := strings.Cut(word, "=")
		flag := c.flag(name)
		switch {
		case flag == nil || flag.IsBool():
		case given:
			c.flags[flag.Name] = append(c.flags[flag.Name], value)
		case strings.HasPrefix(word, "--") || len(word) == len("-x"):
			c.waits = flag
		}
	}
}

// flag returns the flag with a name as it is typed, nil if there is none.
func (c *completion) flag(typed string) *kong.Flag {
	for _, group := range c.node.AllFlags(true) {
		for _, f := range group {
			if typed == "--"+f.Name || !strings.HasPrefix(typed, "--") && f.Short != 0 && strings.HasPrefix(typed, "-"+string(f.Short)) {
				return f
			}
		}
	}
	return nil
}

// candidates are how a word can go on.
type candidates struct {
	files, tags bool
	words       []string
	before      string // stands before each word: the flag in --flag=word
	typed       string // of the word itself
}

func (c *completion) candidates(typed string) candidates {
	switch {
	case c.waits != nil:
		return ofValue(c.waits.Value, candidates{typed: typed})
	case strings.HasPrefix(typed, "-") && !c.literal:
		if name, value, given := strings.Cut(typed, "="); given {
			if flag := c.flag(name); flag != nil {
				return ofValue(flag.Value, candidates{before: name + "=", typed: value})
			}
			return candidates{}
		}
		return candidates{words: c.flagWords(), typed: typed}
	case len(c.node.Children) > 0 && c.args == 0:
		return candidates{words: commandWords(c.node), typed: typed}
	}
	if n := len(c.node.Positional); n > 0 && (c.args < n || c.node.Positional[n-1].IsCumulative()) {
		return ofValue(c.node.Positional[min(c.args, n-1)], candidates{typed: typed})
	}
	return candidates{typed: typed}
}

// ofValue adds what is known of the values of a flag or an argument.
func ofValue(v *kong.Value, to candidates) candidates {
	hint := v.Tag.PlaceHolder
	switch {
	case v.Tag.Get("words") != "":
		to.words = strings.Split(v.Tag.Get("words"), ",")
	case v.Enum != "":
		to.words = strings.Split(v.Enum, ",")
	case v.Name == "tag":
		to.tags = true
	case v.Name == "file" || slices.Contains([]string{"FILE", "DIR", "FOLDER"}, hint):
		to.files = true
	}
	return to
}

func commandWords(node *kong.Node) (words []string) {
	for _, child := range node.Children {
		if !child.Hidden {
			words = append(words, child.Name+"\t"+firstSentence(child.Help))
		}
	}
	return words
}

func (c *completion) flagWords() (words []string) {
	for _, group := range c.node.AllFlags(true) {
		for _, f := range group {
			words = append(words, "--"+f.Name+"\t"+firstSentence(f.Help))
			if f.Tag.Negatable != "" {
				words = append(words, "--no-"+f.Name+"\t"+firstSentence(f.Help))
			}
		}
	}
	slices.Sort(words)
	return words
}

func firstSentence(help string) string {
	sentence, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(strings.Join(strings.Fields(sentence), " "), ".")
}

const (
	// completionTimeout is how long a person waits for the names of tags.
	completionTimeout = 2 * time.Second
	// maxTagWords bounds what a shell has to show.
	maxTagWords = 5000
)

// tagWords asks the node that the flags and the environment lead to. When none answers, there
// are no words: a completion must not disturb the line that is being typed, and open no
// database.
func tagWords(ctx context.Context, p Process, flags map[string][]string) (words []string) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	in := config.Input{Flags: map[string][]string{}, Environ: p.Environ, Command: true}
	for _, k := range config.Keys() {
		if values := flags[k.Flag()]; values != nil && (k.Name == "data-dir" || remoteHelp[k.Name] != "") {
			in.Flags[k.Name] = values
		}
	}
	if file := flags["config"]; file != nil {
		in.File = file[len(file)-1]
	}
	l, err := config.Load(in)
	if err != nil {
		return nil
	}
	var b manage.Backend
	var done func() error
	if l.Endpoint != "" {
		b, done, err = app.OpenEndpoint(l)
	} else {
		b, done, err = app.OpenNode(ctx, l.Config)
	}
	if err != nil {
		return nil
	}
	defer func() { _ = done() }()
	tags, err := manage.Ask(ctx, b, manage.ListTags{})
	if err != nil {
		return nil
	}
	for _, t := range tags[:min(len(tags), maxTagWords)] {
		words = append(words, t.Name)
	}
	return words
}
