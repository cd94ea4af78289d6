package house_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// modulePath is this module's name, the beginning of all our import paths.
const modulePath = "github.com/headroomhq/headroom"

// tree is the repository, found by walking up to its go.mod. The sources are
// read and not asked of the go command: its answer would come from the test
// cache, which does not notice a new import in another package.
func tree(t *testing.T) fs.FS {
	t.Helper()
	return os.DirFS(root(t))
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}

// files lists what has one of the extensions, in order, outside of folders that
// hold no source of ours (those beginning with a dot, and testdata).
func files(fsys fs.FS, extensions ...string) ([]string, error) {
	var found []string
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case !entry.IsDir() && slices.Contains(extensions, path.Ext(name)):
			found = append(found, name)
		}
		return nil
	})
	return found, err
}

// report fails the test with each fault, and when the check could not be made.
func report(t *testing.T, faults []string, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}
