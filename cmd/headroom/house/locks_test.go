package house_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"strconv"
	"strings"
	"testing"
)

func TestAdvisoryLocksDiffer(t *testing.T) {
	t.Parallel()
	faults, err := sharedLocks(tree(t))
	report(t, faults, err)
}

// sharedLocks lists the constants named ...Lock that have one number. All rooms
// take their advisory locks in one database: with the same number, one would wait
// for the other for ever.
func sharedLocks(fsys fs.FS) ([]string, error) {
	names, err := files(fsys, ".go")
	if err != nil {
		return nil, err
	}
	owners := make(map[int64]string)
	var faults []string
	for _, name := range names {
		file, err := parseSource(fsys, name)
		if err != nil {
			return nil, err
		}
		for constant, key := range lockNumbers(file) {
			if owner, taken := owners[key]; taken {
				faults = append(faults, fmt.Sprintf("%s: %s has the number of %s", name, constant, owner))
			}
			owners[key] = name + ": " + constant
		}
	}
	return faults, nil
}

// lockNumbers are the whole numbers that constants named ...Lock have.
func lockNumbers(file *ast.File) map[string]int64 {
	numbers := make(map[string]int64)
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Names) != len(spec.Values) {
			return true
		}
		for i, name := range spec.Names {
			literal, ok := spec.Values[i].(*ast.BasicLit)
			if !ok || literal.Kind != token.INT || !strings.HasSuffix(name.Name, "Lock") {
				continue
			}
			if key, err := strconv.ParseInt(literal.Value, 0, 64); err == nil {
				numbers[name.Name] = key
			}
		}
		return true
	})
	return numbers
}
