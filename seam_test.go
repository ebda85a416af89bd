package leaf_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnginesUseTheSeam: the engines reach clock, goroutines, waiting and chance
// through leaf.Runtime only, so that a simulation can decide all of them (ADR 0004).
func TestEnginesUseTheSeam(t *testing.T) {
	for _, folder := range []string{"segment", "worker"} {
		t.Run(folder, func(t *testing.T) { usesTheSeam(t, folder) })
	}
}

func usesTheSeam(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	forbidden := map[string]bool{
		"time.Now": true, "time.Since": true, "time.Until": true, "time.Sleep": true, "time.After": true, "time.AfterFunc": true,
		"time.NewTimer": true, "time.NewTicker": true, "time.Tick": true,
		"context.WithTimeout": true, "context.WithDeadline": true, "context.AfterFunc": true,
	}
	read := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		read++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if strings.Contains(spec.Path.Value, "math/rand") {
				t.Errorf("%s imports %s", name, spec.Path.Value)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			at := func() token.Position { return set.Position(n.Pos()) }
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%v: go statement; use Runtime.Go", at())
			case *ast.SendStmt:
				t.Errorf("%v: channel send can block; close a channel and use Runtime.Wait", at())
			case *ast.SelectStmt:
				if !hasDefault(n) {
					t.Errorf("%v: select can block; use Runtime.Wait", at())
				}
				return false
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					t.Errorf("%v: channel receive can block; use Runtime.Wait", at())
				}
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && forbidden[pkg.Name+"."+n.Sel.Name] {
					t.Errorf("%v: %s.%s; use the Runtime", at(), pkg.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
	if read < 10 {
		t.Fatalf("%d files read: the test does not see the engine", read)
	}
}

func hasDefault(s *ast.SelectStmt) bool {
	for _, c := range s.Body.List {
		if c.(*ast.CommClause).Comm == nil {
			return true
		}
	}
	return false
}
