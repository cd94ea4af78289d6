package house_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// room is a folder and what the packages in it may import of this module. The
// room with the longest path that holds a package is the one that counts.
type room struct {
	Path string
	// Deep rooms hold folders below them as well; in others a new folder is a
	// new room and has to be drawn first.
	Deep bool
	May  []string
	// Tests are what its test files may import beside that.
	Tests []string
}

// rooms is the drawing of the house: no arrow that is not here.
var rooms = []room{
	{Path: "schemas"},
	{Path: "schemas/schematest", May: []string{"schemas", "cmd/headroom/devstack"}},
	{Path: "subscriptions", May: []string{"schemas"}},
	{Path: "enforcement", May: []string{"schemas", "subscriptions"}},
	{Path: "enforcement/ledger", May: []string{"enforcement", "schemas", "subscriptions"}},
	{Path: "enforcement/client", May: []string{"enforcement", "schemas", "subscriptions"}},
	{Path: "enforcement/usage", May: []string{"schemas", "subscriptions"}},
	{Path: "enforcement/guard", May: []string{"schemas", "subscriptions"}},
	{Path: "enforcement/guard/guardtest", May: []string{"enforcement/guard", "schemas"}},
	{Path: "enforcement/problems", May: []string{"enforcement", "enforcement/guard", "enforcement/usage", "schemas", "subscriptions"}},
	{Path: "enforcement/api", May: []string{
		"enforcement", "enforcement/ledger", "enforcement/problems", "enforcement/usage", "schemas", "subscriptions",
	}},
	{Path: "consumers", May: []string{"enforcement", "enforcement/ledger", "schemas", "subscriptions"}},
	{Path: "webhooks", May: []string{"schemas", "subscriptions"}, Tests: []string{"webhooks/stripetest"}},
	{Path: "webhooks/stripetest"},
	{Path: "examples"},
	{Path: "examples/engine", Deep: true, May: []string{"enforcement/client", "examples/engine", "schemas"}},
	{Path: "examples/race", Deep: true, May: []string{
		"cmd/headroom/devstack", "enforcement/client", "enforcement/guard", "enforcement/usage", "examples/race", "schemas", "subscriptions",
	}},
	{Path: "examples/projects", Deep: true, May: []string{
		"cmd/headroom/devstack", "enforcement/client", "enforcement/guard", "enforcement/problems", "enforcement/usage", "examples/projects", "schemas", "subscriptions",
	}},
	{Path: "cmd/headroom/devstack"},
	{Path: "cmd/headroom", Deep: true, May: []string{
		"cmd/headroom", "cmd/headroom/devstack", "consumers", "enforcement", "enforcement/api", "enforcement/client",
		"enforcement/ledger", "enforcement/problems", "enforcement/usage", "examples", "examples/engine", "schemas", "subscriptions", "webhooks",
		"webhooks/stripetest",
	}},
}

// forTests is what any test file may import beside its room's arrows.
var forTests = []string{"schemas/schematest", "cmd/headroom/devstack"}

// fence keeps a foreign package to the rooms that own it.
type fence struct {
	Import string
	Within []string
	// Tests is whether any test file may import it too.
	Tests bool
}

// fences are the foreign packages whose types must not spread.
var fences = []fence{
	{Import: "github.com/stripe/stripe-go", Within: []string{"webhooks"}},
	{Import: "github.com/redis/go-redis", Within: []string{"enforcement", "cmd", "schemas/schematest"}, Tests: true},
	{Import: "github.com/jackc/pgx", Within: []string{"schemas", "subscriptions", "enforcement", "examples", "webhooks", "cmd"}, Tests: true},
	{Import: "github.com/nats-io", Within: []string{"schemas", "consumers", "enforcement/api", "enforcement/client", "examples", "cmd"}, Tests: true},
	{Import: "github.com/nats-io/nats-server", Within: []string{"cmd", "schemas/schematest"}, Tests: true},
	{Import: "net/http", Within: []string{"webhooks", "enforcement/api", "enforcement/client", "enforcement/problems", "examples/projects", "cmd"}, Tests: true},
	{Import: "github.com/prometheus", Within: []string{"cmd"}},
	{Import: "github.com/alicebob/miniredis", Within: []string{"cmd/headroom/devstack"}},
	{Import: "github.com/google/go-cmp", Within: []string{"schemas/schematest"}, Tests: true},
	{Import: "go.uber.org/goleak", Within: []string{"schemas/schematest"}, Tests: true},
	{Import: "testing", Within: []string{"schemas/schematest", "enforcement/guard/guardtest"}, Tests: true},
}

func TestArrowsAreThoseDrawn(t *testing.T) {
	t.Parallel()
	faults, err := arrows(tree(t))
	report(t, faults, err)
}

// arrows lists every import that is in no drawing and inside no fence.
func arrows(fsys fs.FS) ([]string, error) {
	names, err := files(fsys, ".go")
	if err != nil {
		return nil, err
	}
	var faults []string
	for _, name := range names {
		imports, err := importsOf(fsys, name)
		if err != nil {
			return nil, err
		}
		for _, target := range imports {
			if fault := judge(name, target); fault != "" {
				faults = append(faults, fault)
			}
		}
	}
	return faults, nil
}

func importsOf(fsys fs.FS, name string) ([]string, error) {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
	if err != nil {
		return nil, fmt.Errorf("read the imports of %s: %w", name, err)
	}
	var targets []string
	for _, spec := range file.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("read the imports of %s: %w", name, err)
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// judge is the fault of one import in one file, or nothing.
func judge(name, target string) string {
	dir, isTest := path.Dir(name), strings.HasSuffix(name, "_test.go")
	if inside, ours := strings.CutPrefix(target, modulePath+"/"); ours {
		return judgeArrow(name, dir, inside, isTest)
	}
	for _, f := range fences {
		within := slices.ContainsFunc(f.Within, func(place string) bool { return below(dir, place) })
		if below(target, f.Import) && !within && !(isTest && f.Tests) {
			return fmt.Sprintf("%s imports %s, which belongs to %s", name, target, strings.Join(f.Within, ", "))
		}
	}
	return ""
}

func judgeArrow(name, dir, target string, isTest bool) string {
	from, known := roomOf(dir)
	switch {
	case !known:
		return fmt.Sprintf("%s is in a room that is not drawn; add its arrows to rooms", name)
	case isTest && (target == dir || slices.Contains(forTests, target) || slices.Contains(from.Tests, target)):
		return ""
	case slices.ContainsFunc(from.May, func(may string) bool { return allows(may, target) }):
		return ""
	}
	return fmt.Sprintf("%s imports %s; %s may import only: %s", name, target, from.Path, strings.Join(from.May, ", "))
}

// allows reports whether an arrow to the room may is one to the package target.
func allows(may, target string) bool {
	to, known := roomOf(target)
	return target == may || known && to.Deep && below(target, may)
}

// roomOf is the room with the longest path that holds the package.
func roomOf(dir string) (room, bool) {
	var best room
	for _, r := range rooms {
		if (dir == r.Path || r.Deep && below(dir, r.Path)) && len(r.Path) > len(best.Path) {
			best = r
		}
	}
	return best, best.Path != ""
}

// below reports whether a path is the place or under it; an import path's
// major version, as in "/v9", counts as under it.
func below(p, place string) bool {
	return p == place || strings.HasPrefix(p, place+"/")
}
