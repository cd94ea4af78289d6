package house_test

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/headroomhq/headroom/enforcement"
)

func TestReadmeIsTrue(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]func(fs.FS) ([]string, error){
		"settings": settingsTable, "codes": codesTable, "links": brokenLinks,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults, err := check(tree(t))
			report(t, faults, err)
		})
	}
}

// settingsTable compares README's rows with the program's list, in both directions.
func settingsTable(fsys fs.FS) ([]string, error) {
	rows, err := tableRows(fsys, "README.md", "`HEADROOM_")
	if err != nil {
		return nil, err
	}
	list, err := settings(fsys)
	if err != nil {
		return nil, err
	}
	written := make(map[string]string)
	for _, row := range rows {
		written[strings.Trim(row[0], "`")] = strings.Trim(row[1], "`")
	}
	var faults []string
	for _, s := range list {
		value, there := written[s.Name]
		delete(written, s.Name)
		switch {
		case !there:
			faults = append(faults, "README has no row for "+s.Name)
		case s.Default != "" && value != s.Default:
			faults = append(faults, fmt.Sprintf("README says %s defaults to %q, the program to %q", s.Name, value, s.Default))
		}
	}
	for name := range written {
		faults = append(faults, "README has a row for "+name+", which is no setting")
	}
	return faults, nil
}

// codesTable compares README's codes with enforcement's.
func codesTable(fsys fs.FS) ([]string, error) {
	rows, err := tableRows(fsys, "README.md", "9")
	if err != nil {
		return nil, err
	}
	written := make(map[string]string)
	for _, row := range rows {
		written[row[0]] = row[1]
	}
	var faults []string
	for code := enforcement.CodeExecutionQuota; code <= enforcement.CodeUnavailable; code++ {
		if got, want := written[strconv.Itoa(code)], enforcement.CodeName(code); got != want {
			faults = append(faults, fmt.Sprintf("README calls %d %q, it is %q", code, got, want))
		}
	}
	return faults, nil
}

// tableRows reads the cells of a page's table rows whose first cell begins so.
func tableRows(fsys fs.FS, name, begins string) ([][]string, error) {
	body, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| "+begins) {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	return rows, nil
}

// link is a markdown link's target, without the part after "#".
var link = regexp.MustCompile(`\]\(([^)#\s]+)`)

// brokenLinks lists the links of all pages to files that are not there.
func brokenLinks(fsys fs.FS) ([]string, error) {
	pages, err := files(fsys, ".md")
	if err != nil {
		return nil, err
	}
	var faults []string
	for _, page := range pages {
		body, err := fs.ReadFile(fsys, page)
		if err != nil {
			return nil, err
		}
		for _, match := range link.FindAllStringSubmatch(string(body), -1) {
			target := match[1]
			if strings.Contains(target, "://") {
				continue
			}
			if _, err := fs.Stat(fsys, path.Join(path.Dir(page), target)); err != nil {
				faults = append(faults, fmt.Sprintf("%s links to %s, which is not there", page, target))
			}
		}
	}
	return faults, nil
}

func TestReadmeFaultsAreCaught(t *testing.T) {
	t.Parallel()
	const source = "package main\n\nvar x = Setting{\"HEADROOM_A\", \"5\", \"\"}\n"
	cases := map[string]struct {
		check  func(fs.FS) ([]string, error)
		readme string
		says   string
	}{
		"a setting without a row": {settingsTable, "", "no row for HEADROOM_A"},
		"another default":         {settingsTable, "| `HEADROOM_A` | `6` | x |", "defaults to \"6\""},
		"a row without a setting": {settingsTable, "| `HEADROOM_A` | `5` | x |\n| `HEADROOM_B` | `6` | x |", "HEADROOM_B, which is no setting"},
		"a code of another name":  {codesTable, "| 9001 | PlanExecutionTimeout | x |", "README calls 9001"},
		"a dead link":             {brokenLinks, "[x](docs/none.md#there)", "docs/none.md, which is not there"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults, err := c.check(fstest.MapFS{
				"README.md":  {Data: []byte(c.readme)},
				settingsFile: {Data: []byte(source)},
			})
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(faults, "\n"); !strings.Contains(said, c.says) {
				t.Errorf("found %q, want %q", said, c.says)
			}
		})
	}
}
