package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// writeIndented writes JSON for -o json: indented, one value.
func writeIndented(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	return nil
}

// table aligns rows of cells under a head.
type table struct {
	head []string
	rows [][]string
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table, or instead of an empty one the sentence.
func (t *table) write(w io.Writer, empty string) error {
	if len(t.rows) == 0 {
		_, err := fmt.Fprintln(w, empty)
		return err
	}
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.head}, t.rows...) {
		fmt.Fprintln(aligned, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	return aligned.Flush()
}

// facts prints "name  value" lines, one for each pair.
func facts(w io.Writer, pairs ...[2]string) error {
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, pair := range pairs {
		fmt.Fprintf(aligned, "%s\t%s\n", pair[0], pair[1])
	}
	return aligned.Flush()
}

// instant is how a table shows a time: UTC, to the second, "-" for none.
func instant(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// mark is "yes", or "-" for false.
func mark(is bool) string {
	if is {
		return "yes"
	}
	return "-"
}

// number is n in decimal.
func number(n int64) string { return strconv.FormatInt(n, 10) }

// list makes JSON write [] for no items instead of null.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// dash is the text, or "-" for none.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
