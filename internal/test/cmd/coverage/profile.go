package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// block is a run of statements of one source file that are executed together.
type block struct {
	file             string // relative to the module
	line, col        int    // where it begins
	endLine, endCol  int
	statements       int
	reached          bool
	function, source string // set by locate
}

// pkg is the folder of the block's package.
func (b block) pkg() string { return path.Dir(b.file) }

// parseProfile reads what go test -coverprofile writes. With -coverpkg every test
// binary reports every block; it is reached if one of them reached it. Blocks without
// a statement are left out.
func parseProfile(text, module string) ([]block, error) {
	head, text, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(head, "mode: ") {
		return nil, fmt.Errorf("a profile begins with its mode, not with %q", head)
	}
	found := map[string]block{}
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		b := block{file: strings.TrimPrefix(name, module+"/")}
		var count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.line, &b.col, &b.endLine, &b.endCol, &b.statements, &count); !ok || err != nil {
			return nil, fmt.Errorf("line %q of the profile cannot be read", line)
		}
		if b.statements == 0 {
			continue
		}
		key := fmt.Sprintf("%s:%d.%d,%d.%d", name, b.line, b.col, b.endLine, b.endCol)
		b.reached = count > 0 || found[key].reached
		found[key] = b
	}
	return slices.SortedFunc(maps.Values(found), func(a, b block) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.col, b.col))
	}), nil
}

// locate finds the function and the text of every block. Both stay what they are when
// lines above move.
func locate(module fs.FS, blocks []block) error {
	lines := map[string][]string{}
	functions := map[string][]span{}
	for i := range blocks {
		b := &blocks[i]
		if lines[b.file] == nil {
			source, err := fs.ReadFile(module, b.file)
			if err != nil {
				return err
			}
			if functions[b.file], err = spans(b.file, source); err != nil {
				return err
			}
			lines[b.file] = strings.Split(string(source), "\n")
		}
		if b.line > len(lines[b.file]) {
			return fmt.Errorf("%s has no line %d: it is not what was measured", b.file, b.line)
		}
		for _, f := range functions[b.file] {
			if f.first <= b.line && b.line <= f.last {
				b.function = strings.TrimPrefix(b.pkg()+".", "..") + f.name
			}
		}
		b.source = text(lines[b.file], *b)
	}
	return nil
}

// span is a function of a file.
type span struct {
	name        string // with its receiver: Board.Raise
	first, last int
}

func spans(name string, source []byte) ([]span, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []span
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		s := span{f.Name.Name, set.Position(f.Pos()).Line, set.Position(f.End()).Line}
		if f.Recv != nil {
			s.name = receiver(f.Recv.List[0].Type) + "." + s.name
		}
		all = append(all, s)
	}
	return all, nil
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}

// text is the line on which the block begins, which for most blocks has the condition
// under which it is reached, and the first line inside it.
func text(lines []string, b block) string {
	first := code(lines[b.line-1])
	if opens := strings.HasSuffix(first, "{") || strings.HasSuffix(first, ":"); opens && b.endLine > b.line && b.line < len(lines) {
		first += " " + code(lines[b.line])
	}
	return first
}

// code is a line without what stands around it and behind it.
func code(line string) string {
	line, _, _ = strings.Cut(line, " // ")
	return strings.TrimSpace(line)
}
