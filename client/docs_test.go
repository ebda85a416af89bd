package client_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocument: docs/CLIENT.md has a line for every option, every way to name nodes, and
// every field of the structs that go in and out; and none for what is not there.
func TestDocument(t *testing.T) {
	content, err := os.ReadFile("../docs/CLIENT.md")
	if err != nil {
		t.Fatal(err)
	}
	document := string(content)
	field := regexp.MustCompile("`([A-Z]\\w*)`")
	own, held := exported(t, "."), exported(t, "cache")
	for _, tt := range []struct {
		heading string // the table below it has one row for each
		name    *regexp.Regexp
		want    []string
	}{
		{"## Where the nodes are", regexp.MustCompile("^`client\\.(\\w+)\\("), own.returning("Resolver")},
		{"## Options", regexp.MustCompile("^`(\\w+)\\("), own.returning("Option")},
		{"## The cache", field, held.fields("Config")},
		{"### Of the client", field, own.fields("Stats")},
		{"### Of a node", field, own.fields("NodeStats")},
		{"### Of the cache", field, held.fields("Stats")},
	} {
		t.Run(tt.heading, func(t *testing.T) {
			var got []string
			for row := range strings.Lines(section(t, document, tt.heading)) {
				cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
				if cell == row {
					continue // not of a table
				}
				for _, m := range tt.name.FindAllStringSubmatch(cell, -1) {
					got = append(got, m[1])
				}
			}
			if len(tt.want) == 0 {
				t.Fatal("nothing was found in the code")
			}
			for _, name := range tt.want {
				if !slices.Contains(got, name) {
					t.Errorf("%s has no row", name)
				}
			}
			for _, name := range got {
				if !slices.Contains(tt.want, name) {
					t.Errorf("%s has a row and is not in the code", name)
				}
			}
		})
	}
	for _, m := range regexp.MustCompile(`\bWith[A-Z]\w+`).FindAllString(document, -1) {
		if !slices.Contains(own.returning("Option"), m) {
			t.Errorf("the document speaks of %s, which is no option", m)
		}
	}
}

// TestDocumentProgram: the program that docs/CLIENT.md shows, and its test, are those of
// examples/quickstart, which are built and run.
func TestDocumentProgram(t *testing.T) {
	content, err := os.ReadFile("../docs/CLIENT.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(content), "```go\n")[1:]
	files := []string{"main.go", "main_test.go"}
	if len(blocks) != len(files) {
		t.Fatalf("%d programs in the document, want %v", len(blocks), files)
	}
	for i, name := range files {
		want, err := os.ReadFile(filepath.Join("../examples/quickstart", name))
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(blocks[i], "```\n"); got != string(want) {
			t.Errorf("%s is not what the document shows", name)
		}
	}
}

// section returns what stands between a heading and the next one of any level.
func section(t *testing.T, document, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(document, "\n"+heading+"\n")
	if !found {
		t.Fatalf("no heading %q", heading)
	}
	text, _, _ := strings.Cut(rest, "\n#")
	return text
}

// declarations are those of a package, without its tests.
type declarations []ast.Decl

func exported(t *testing.T, dir string) (all declarations) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f.Decls...)
	}
	return all
}

// returning returns the exported functions whose result is of that type of the package.
func (all declarations) returning(result string) (names []string) {
	for _, d := range all {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !f.Name.IsExported() || f.Type.Results == nil {
			continue
		}
		if id, ok := f.Type.Results.List[0].Type.(*ast.Ident); ok && id.Name == result {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

// fields returns the exported fields of a struct.
func (all declarations) fields(name string) (names []string) {
	for _, d := range all {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			typ, ok := s.(*ast.TypeSpec)
			if !ok || typ.Name.Name != name {
				continue
			}
			of, ok := typ.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range of.Fields.List {
				for _, id := range f.Names {
					if id.IsExported() {
						names = append(names, id.Name)
					}
				}
			}
		}
	}
	return names
}
