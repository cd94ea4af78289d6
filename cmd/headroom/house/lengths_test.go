package house_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"testing"
)

// longest is how many lines a source file may have. A file that reaches it owns
// more than one thing.
const longest = 400

func TestNoSourceFileIsTooLong(t *testing.T) {
	t.Parallel()
	faults, err := tooLong(tree(t))
	report(t, faults, err)
}

// generated is the first line of a file that a program writes, as Go's tools know it.
var generated = []byte("// Code generated ")

// tooLong lists the Go, Lua and SQL files with more lines than longest that a person keeps.
func tooLong(fsys fs.FS) ([]string, error) {
	names, err := files(fsys, ".go", ".lua", ".sql")
	if err != nil {
		return nil, err
	}
	var faults []string
	for _, name := range names {
		source, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		if n := bytes.Count(source, []byte("\n")); n > longest && !bytes.HasPrefix(source, generated) {
			faults = append(faults, fmt.Sprintf("%s has %d lines, more than %d: it holds two things", name, n, longest))
		}
	}
	return faults, nil
}
