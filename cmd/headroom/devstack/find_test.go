package devstack_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
)

// Not parallel: it sets PATH.
func TestProgramsAreFoundTogether(t *testing.T) {
	root := t.TempDir()
	place := func(name string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"9/server", "9/maker", "15/server", "15/maker", "16/server", "path/server", "path/maker", "half/server"} {
		place(name, 0o755)
	}
	place("17/server", 0o644)
	place("17/maker", 0o644)
	versions := filepath.Join(root, "[0-9]*")
	tests := map[string]struct {
		path    string
		pattern string
		want    string
	}{
		"on PATH first":                          {path: "path", pattern: versions, want: "path"},
		"the newest that has both, by number":    {path: "nowhere", pattern: versions, want: "15"},
		"one of them on PATH is not enough":      {path: "half", pattern: versions, want: "15"},
		"none where others would have been seen": {path: "half", pattern: filepath.Join(root, "none*"), want: ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", filepath.Join(root, test.path))
			got, err := devstack.FindTogether([]string{"server", "maker"}, []string{test.pattern},
				devstack.MissingError{Service: "Thing", Apt: "thing-apt", Brew: "thing-brew"})
			if test.want != "" {
				if err != nil || got != filepath.Join(root, test.want) {
					t.Errorf("found %q, %v; want %s", got, err, test.want)
				}
				return
			}
			var missing *devstack.MissingError
			if !errors.As(err, &missing) {
				t.Fatalf("got %q, %v; want a MissingError", got, err)
			}
			for _, part := range []string{"Thing", "server and maker", "apt-get install thing-apt", "brew install thing-brew"} {
				if !strings.Contains(missing.Error(), part) {
					t.Errorf("the error does not contain %q: %v", part, missing)
				}
			}
		})
	}
}

func TestWhoMayEnterADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tests := map[string]struct {
		mode                  os.FileMode
		owner, group, another bool
	}{
		"only its owner": {mode: 0o700, owner: true},
		"its group":      {mode: 0o710, owner: true, group: true},
		"everyone":       {mode: 0o711, owner: true, group: true, another: true},
		// The first class that fits decides, as in the kernel.
		"all but its owner": {mode: 0o611, group: true, another: true},
	}
	for name, test := range tests {
		if err := os.Chmod(dir, test.mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		uid, gid := devstack.OwnerOf(info)
		for who, fault := range map[string]bool{
			"the owner":           devstack.ExecutableBy(info, uid, gid+1) != test.owner,
			"a user of the group": devstack.ExecutableBy(info, uid+1, gid) != test.group,
			"another user":        devstack.ExecutableBy(info, uid+1, gid+1) != test.another,
		} {
			if fault {
				t.Errorf("%s (%o): wrong about %s", name, test.mode, who)
			}
		}
	}
}
