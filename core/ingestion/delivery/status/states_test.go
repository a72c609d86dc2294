package status

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every constant of a state is in States, and every state that is set is a constant.
func TestStatesAreAll(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	callers, err := filepath.Glob("../*.go")
	if err != nil || len(callers) == 0 {
		t.Fatal(callers, err)
	}
	files = append(files, callers...)
	constants := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if value, ok := literal(n.Values); ok && file == "tracker.go" {
					if constants++; !slices.Contains(States(), value) {
						t.Errorf("%s: %s is not in States", file, value)
					}
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"SetState", "SetFailed", "SetFiltering"}, f.Sel.Name) {
					if value, ok := literal(n.Args); ok && value != "" {
						t.Errorf("%s: %s(%q): use a constant", file, f.Sel.Name, value)
					}
				}
			}
			return true
		})
	}
	if constants != len(States()) {
		t.Errorf("%d constants, %d states", constants, len(States()))
	}
}

// literal returns the value of the first expression if it is a text.
func literal(list []ast.Expr) (string, bool) {
	if len(list) == 0 {
		return "", false
	}
	lit, ok := list[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(lit.Value)
	return value, err == nil
}
