package house_test

import (
	"io/fs"
	"slices"
	"testing"
)

// topLevel is all that lies at the top of the repository. Built binaries go to
// .ci/bin; what a person's editor leaves belongs in .git/info/exclude and
// elsewhere.
var topLevel = []string{
	".ci", ".git", ".golangci.yml",
	"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md",
	"cmd", "consumers", "docker-compose.yml", "docs", "enforcement", "examples",
	"go.mod", "go.sum", "schemas", "subscriptions", "webhooks",
}

func TestTopLevelIsFixed(t *testing.T) {
	t.Parallel()
	faults, err := strangers(tree(t))
	report(t, faults, err)
}

// strangers lists what lies at the top beyond topLevel, and what is missing there.
func strangers(fsys fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	var faults, seen []string
	for _, entry := range entries {
		seen = append(seen, entry.Name())
		if !slices.Contains(topLevel, entry.Name()) {
			faults = append(faults, entry.Name()+" does not belong at the top of the repository")
		}
	}
	for _, name := range topLevel {
		if name != ".git" && !slices.Contains(seen, name) {
			faults = append(faults, name+" is missing at the top of the repository")
		}
	}
	return faults, nil
}
