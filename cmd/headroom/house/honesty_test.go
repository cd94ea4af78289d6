package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// skips are the methods by which a test says that it did not run.
var skips = []string{"Skip", "Skipf", "SkipNow"}

func TestNoTestSkipsOrSleeps(t *testing.T) {
	t.Parallel()
	faults, err := dishonest(tree(t))
	report(t, faults, err)
}

// dishonest lists each call in a test, or in what serves tests, that skips the
// test or sleeps. A missing service is a failure; waiting is for what the
// system emits, with a deadline.
func dishonest(fsys fs.FS) ([]string, error) {
	names, err := files(fsys, ".go")
	if err != nil {
		return nil, err
	}
	var faults []string
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "schemas/schematest/") {
			continue
		}
		found, err := dishonestCalls(fsys, name)
		if err != nil {
			return nil, err
		}
		faults = append(faults, found...)
	}
	return faults, nil
}

func dishonestCalls(fsys fs.FS, name string) ([]string, error) {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	var faults []string
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		receiver, _ := selector.X.(*ast.Ident)
		sleeps := receiver != nil && receiver.Name == "time" && selector.Sel.Name == "Sleep"
		if sleeps || slices.Contains(skips, selector.Sel.Name) {
			faults = append(faults, fmt.Sprintf("%s: a test neither skips nor sleeps", set.Position(node.Pos())))
		}
		return true
	})
	return faults, nil
}
