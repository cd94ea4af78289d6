package main

import (
	"slices"
	"strings"
)

// unusedVariable is a HEADROOM_ variable that is set and has no effect.
type unusedVariable struct{ Variable, Reason string }

// unusedVariables finds them among the names of environ ("NAME=value"), so that
// a misspelt setting is heard of. getenv decides what counts as set.
func unusedVariables(getenv func(string) string, environ []string) []unusedVariable {
	var unused []unusedVariable
	known := knownVariables()
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variablePrefix) || slices.Contains(known, name) || fromKubernetes(name) || getenv(name) == "" {
			continue
		}
		unused = append(unused, unusedVariable{name, unusedReason(name, known)})
	}
	slices.SortFunc(unused, func(a, b unusedVariable) int { return strings.Compare(a.Variable, b.Variable) })
	return unused
}

func unusedReason(name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return "no such setting; did you mean " + near + "?"
	}
	return "no such setting; README lists them"
}

func knownVariables() []string {
	var names []string
	for _, s := range Settings() {
		names = append(names, s.Name)
		if s.Secret {
			names = append(names, s.Name+fileSuffix)
		}
	}
	return names
}

// fromKubernetes recognises what a cluster sets in every pod beside a service
// that is named headroom.
func fromKubernetes(name string) bool {
	rest := strings.TrimPrefix(name, variablePrefix)
	return rest == "PORT" || strings.HasPrefix(rest, "PORT_") || strings.HasPrefix(rest, "SERVICE_")
}

// nearest is the known name that the fewest edits away, if they are few.
func nearest(name string, known []string) string {
	best, bestEdits := "", 4
	for _, candidate := range known {
		if edits := editDistance(name, candidate); edits < bestEdits {
			best, bestEdits = candidate, edits
		}
	}
	return best
}

// editDistance counts the insertions, deletions and replacements of bytes
// between two words (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
