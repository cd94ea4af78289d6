package devstack

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// home is a service's private directory with its guard. Nothing of the service
// lies outside of it.
type home struct {
	dir   string
	owner *owner
	guard *guard
}

// newHome makes a directory below parent, for the given owner alone. An empty
// parent means the first temporary directory that the owner can reach. The guard
// comes before the directory, so that no moment is unguarded.
func newHome(parent, prefix string, own *owner) (*home, error) {
	parent, err := reachableParent(parent, own)
	if err != nil {
		return nil, err
	}
	// The name is too long a secret to exist already; the guard removes what has it.
	dir := filepath.Join(parent, prefix+rand.Text())
	watch, err := startGuard(dir)
	if err != nil {
		return nil, err
	}
	h := &home{dir: dir, owner: own, guard: watch}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("make a private directory: %w", err), h.close())
	}
	if err := own.chown(dir); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *home) path(name string) string { return filepath.Join(h.dir, name) }

// write stores a file that only the owner may read.
func (h *home) write(name, content string) error {
	if err := os.WriteFile(h.path(name), []byte(content), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return h.owner.chown(h.path(name))
}

// close removes the directory and dismisses the guard, which first removes what the
// last children of a killed service may write meanwhile. No service may be running.
func (h *home) close() error {
	_ = os.RemoveAll(h.dir)
	err := h.guard.close()
	if left := os.RemoveAll(h.dir); left != nil {
		err = errors.Join(err, fmt.Errorf("remove the private directory: %w", left))
	}
	return err
}

func reachableParent(parent string, own *owner) (string, error) {
	candidates := []string{parent}
	if parent == "" {
		candidates = []string{os.TempDir(), "/tmp", "/var/tmp"}
	}
	var faults []error
	for _, candidate := range candidates {
		dir, err := resolve(candidate)
		if err == nil {
			err = own.reaches(dir)
		}
		if err == nil {
			return dir, nil
		}
		faults = append(faults, err)
	}
	return "", fmt.Errorf("find a place for private data (set TMPDIR to a directory that every user can enter): %w",
		errors.Join(faults...))
}

func resolve(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// ancestors lists a directory and all above it, from the root down.
func ancestors(dir string) []string {
	all := []string{dir}
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		all = append(all, dir)
	}
	slices.Reverse(all)
	return all
}

func executableBy(info fs.FileInfo, own *owner) bool {
	uid, gid := ownerOf(info)
	mode := info.Mode().Perm()
	switch {
	case uid == own.uid:
		return mode&0o100 != 0
	case gid == own.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}
