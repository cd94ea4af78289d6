package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strconv"
	"strings"
)

// setting is a variable of the program's environment, as its source lists it.
type setting struct {
	Name string
	// Default is empty where the source names a constant instead of a text.
	Default string
}

// settingsFile is where the program lists its settings.
const settingsFile = "cmd/headroom/settings.go"

// settings reads the program's list: each literal whose first text is the name
// of a variable and whose second is its default.
func settings(fsys fs.FS) ([]setting, error) {
	file, err := parseSource(fsys, settingsFile)
	if err != nil {
		return nil, err
	}
	var list []setting
	ast.Inspect(file, func(node ast.Node) bool {
		literal, ok := node.(*ast.CompositeLit)
		if !ok || len(literal.Elts) < 2 {
			return true
		}
		if name := text(literal.Elts[0]); strings.HasPrefix(name, "HEADROOM_") {
			list = append(list, setting{Name: name, Default: text(literal.Elts[1])})
		}
		return true
	})
	if len(list) == 0 {
		return nil, fmt.Errorf("read the settings of %s: found none", settingsFile)
	}
	return list, nil
}

// number reads an integer constant of a source file.
func number(fsys fs.FS, name, constant string) (int, error) {
	file, err := parseSource(fsys, name)
	if err != nil {
		return 0, err
	}
	found, value := false, 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || spec.Names[0].Name != constant || len(spec.Values) != 1 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			value, err = strconv.Atoi(literal.Value)
			found = err == nil
		}
		return false
	})
	if !found {
		return 0, fmt.Errorf("read %s: no number named %s", name, constant)
	}
	return value, nil
}

func parseSource(fsys fs.FS, name string) (*ast.File, error) {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return file, nil
}

// text is the value of a string literal, empty for any other expression.
func text(expression ast.Expr) string {
	literal, ok := expression.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return value
}
