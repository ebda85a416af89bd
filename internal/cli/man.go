package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"
)

// manCmd writes the manual pages for a package: leaf.1, and leaf-COMMAND.1 of each command.
type manCmd struct {
	Folder string `arg:"" help:"Folder of the pages; it is made."`
}

// Run writes the pages. Two runs of one build write the same bytes.
func (c *manCmd) Run(k *kong.Context) error {
	if err := os.MkdirAll(c.Folder, 0o755); err != nil {
		return fmt.Errorf("folder of the pages: %w", err)
	}
	pages := append([]*kong.Node{k.Model.Node}, k.Model.Leaves(true)...)
	for _, node := range pages {
		if err := os.WriteFile(filepath.Join(c.Folder, manName(node)+".1"), manPage(node, pages[1:]), 0o644); err != nil {
			return fmt.Errorf("manual page: %w", err)
		}
	}
	return nil
}

func manName(node *kong.Node) string { return strings.ReplaceAll(node.FullPath(), " ", "-") }

// manPage is the page of a command in the macros of man(7).
func manPage(node *kong.Node, commands []*kong.Node) []byte {
	m := &roff{}
	whole := node.Type == kong.ApplicationNode
	m.macro("TH", strings.ToUpper(manName(node)), "1", "", "leaf "+version(), "Leaf")
	m.macro("SH", "NAME")
	help, detail := node.Help, node.Detail
	if whole {
		help, detail, _ = strings.Cut(node.Help, "\n")
	}
	m.text(manName(node) + " - " + firstSentence(help))
	m.macro("SH", "SYNOPSIS")
	if whole {
		m.text("leaf COMMAND [FLAGS]")
	} else {
		m.text("leaf " + strings.TrimSuffix(node.Summary(), " [flags]") + " [FLAGS]")
	}
	m.macro("SH", "DESCRIPTION")
	m.paragraphs(help)
	m.paragraphs(detail)
	if whole {
		m.macro("SH", "COMMANDS")
		for _, c := range commands {
			m.macro("TP")
			m.macro("BR", manName(c), "(1)")
			m.text(c.Help)
		}
		return m.Bytes()
	}
	if len(node.Positional) > 0 {
		m.macro("SH", "ARGUMENTS")
		for _, p := range node.Positional {
			m.item(p.Name, p.Help)
		}
	}
	m.macro("SH", "OPTIONS")
	group := ""
	for _, f := range allFlags(node) {
		if f.Group != nil && f.Group.Title != group {
			group = f.Group.Title
			m.macro("SS", group)
		}
		m.item(manFlag(f), f.Help)
	}
	m.macro("SH", "SEE ALSO")
	m.macro("BR", "leaf", "(1)")
	return m.Bytes()
}

// allFlags are the flags of a command, those of a group together.
func allFlags(node *kong.Node) (flags []*kong.Flag) {
	var grouped []*kong.Flag
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			if f.Group == nil {
				flags = append(flags, f)
			} else {
				grouped = append(grouped, f)
			}
		}
	}
	return append(flags, grouped...)
}

func manFlag(f *kong.Flag) string {
	name := "--" + f.Name
	if f.Tag.Negatable != "" {
		name = "--[no-]" + f.Name
	}
	if f.Short != 0 {
		name = "-" + string(f.Short) + ", " + name
	}
	if !f.IsBool() {
		name += "=" + f.FormatPlaceHolder()
	}
	return name
}

// roff is a page that is being written.
type roff struct{ bytes.Buffer }

// macro writes a request with its arguments.
func (m *roff) macro(name string, args ...string) {
	m.WriteString("." + name)
	for _, a := range args {
		m.WriteString(` "` + strings.ReplaceAll(escapeRoff(a), `"`, `\(dq`) + `"`)
	}
	m.WriteByte('\n')
}

// text writes lines that are filled.
func (m *roff) text(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			m.WriteString(`\&`)
		}
		m.WriteString(escapeRoff(line) + "\n")
	}
}

func (m *roff) item(name, help string) {
	m.macro("TP")
	m.macro("B", name)
	m.text(help)
}

// paragraphs writes a help text: indented lines stay as they are.
func (m *roff) paragraphs(text string) {
	for part := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		if part == "" {
			continue
		}
		m.macro("PP")
		kept := false
		for line := range strings.SplitSeq(part, "\n") {
			if keep := strings.HasPrefix(line, "  "); keep != kept {
				m.macro(map[bool]string{true: "RS 2\n.nf", false: "fi\n.RE"}[keep])
				kept = keep
			}
			m.text(strings.TrimPrefix(line, "  "))
		}
		if kept {
			m.macro("fi\n.RE")
		}
	}
}

// escapeRoff lets a text stand for itself: a backslash, a hyphen that is typed, and what is not
// in ASCII.
func escapeRoff(text string) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\\':
			out.WriteString(`\e`)
		case r == '-':
			out.WriteString(`\-`)
		case r > unicode.MaxASCII:
			fmt.Fprintf(&out, `\[u%04X]`, r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
