// Package examples is a catalog and a trace to begin with. `headroom dev` plays
// them when it is given no others, so they are always ones that work.
package examples

import _ "embed"

// CatalogName and TraceName are the names of the files, for messages.
const (
	CatalogName = "examples/catalog.yaml"
	TraceName   = "examples/trace.csv"
)

//go:embed catalog.yaml
var catalog []byte

//go:embed trace.csv
var trace []byte

// Catalog is catalog.yaml: four plans from free to enterprise.
func Catalog() []byte { return append([]byte(nil), catalog...) }

// Trace is trace.csv: a morning of five workspaces.
func Trace() []byte { return append([]byte(nil), trace...) }
