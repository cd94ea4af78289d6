package replay

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// Columns names the columns every trace has; their order is free and further
// columns are ignored.
var Columns = []string{
	"system", "application", "execution", "executed_at",
	"tasks", "makespan_seconds", "input_bytes", "output_bytes",
}

// longestMakespan keeps an execution's end inside what a time can hold.
const longestMakespan = 100 * 365 * 24 * time.Hour

// ReadTrace reads a trace in comma separated values with a header; name is
// what messages call the file. Whatever is wrong with the file comes back
// together in one *TraceError; another error means that reading itself failed.
func ReadTrace(name string, source io.Reader) (Trace, error) {
	body, err := io.ReadAll(source)
	if err != nil {
		return Trace{}, fmt.Errorf("read trace %s: %w", name, err)
	}
	reader := &traceReader{trace: Trace{Name: name}, first: make(map[string]int)}
	reader.read(body)
	if len(reader.faults) > 0 {
		return Trace{}, &TraceError{File: name, Faults: reader.faults}
	}
	reader.trace.sort()
	return reader.trace, nil
}

// traceReader gathers executions and faults row by row.
type traceReader struct {
	trace  Trace
	faults []Fault
	// header holds the column names as they stand in the file.
	header []string
	// first is the line on which an execution of a workspace was first seen.
	first map[string]int
}

func (r *traceReader) fault(line int, column, detail string, args ...any) {
	r.faults = append(r.faults, Fault{Line: line, Column: column, Detail: fmt.Sprintf(detail, args...)})
}

func (r *traceReader) read(body []byte) {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if len(bytes.TrimSpace(body)) == 0 {
		r.fault(1, "", "the file is empty, expected the header %s", strings.Join(Columns, ","))
		return
	}
	rows := csv.NewReader(bytes.NewReader(body))
	rows.FieldsPerRecord = -1
	for {
		fields, err := rows.Read()
		switch {
		case errors.Is(err, io.EOF):
			r.finish()
			return
		case err != nil:
			r.unreadable(err)
			if r.header == nil {
				return
			}
		case r.header == nil:
			line, _ := rows.FieldPos(0)
			if !r.readHeader(line, fields) {
				return
			}
		default:
			line, _ := rows.FieldPos(0)
			r.readRow(line, fields)
		}
	}
}

func (r *traceReader) finish() {
	if len(r.trace.Executions) == 0 && len(r.faults) == 0 {
		r.fault(1, "", "the file has a header but no executions")
	}
}

func (r *traceReader) unreadable(err error) {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		r.fault(parse.Line, "", "character %d: %v", parse.Column, parse.Err)
		return
	}
	r.fault(1, "", "%v", err)
}

// readHeader reports whether the rows below the header can be read at all.
func (r *traceReader) readHeader(line int, fields []string) bool {
	seen := make(map[string]bool, len(fields))
	for i, field := range fields {
		fields[i] = strings.TrimSpace(field)
		if seen[fields[i]] {
			r.fault(line, fields[i], "the header names this column twice")
		}
		seen[fields[i]] = true
	}
	for _, column := range Columns {
		if !seen[column] {
			r.fault(line, column, "the header lacks this column")
		}
	}
	r.header = fields
	return len(r.faults) == 0
}

func (r *traceReader) readRow(line int, fields []string) {
	if len(fields) != len(r.header) {
		r.fault(line, "", "has %d columns, the header has %d", len(fields), len(r.header))
		return
	}
	row := traceRow{reader: r, line: line, fields: fields}
	execution := Execution{
		Line:        line,
		System:      row.id("system"),
		Workspace:   row.id("application"),
		ID:          row.id("execution"),
		At:          row.instant("executed_at"),
		Tasks:       row.count("tasks"),
		Makespan:    row.seconds("makespan_seconds"),
		InputBytes:  row.count("input_bytes"),
		OutputBytes: row.count("output_bytes"),
	}
	if row.faulty {
		return
	}
	key := execution.Workspace + "/" + execution.ID
	if earlier, again := r.first[key]; again {
		r.fault(line, "execution", "%q of %s stands on line %d already", execution.ID, execution.Workspace, earlier)
		return
	}
	r.first[key] = line
	r.trace.Executions = append(r.trace.Executions, execution)
}

// traceRow reads the fields of one row and notes each that is wrong.
type traceRow struct {
	reader *traceReader
	line   int
	fields []string
	faulty bool
}

func (r *traceRow) field(column string) string {
	return strings.TrimSpace(r.fields[slices.Index(r.reader.header, column)])
}

func (r *traceRow) fault(column, detail string, args ...any) {
	r.faulty = true
	r.reader.fault(r.line, column, detail, args...)
}

func (r *traceRow) id(column string) string {
	text := r.field(column)
	if !schemas.ValidID(text) {
		r.fault(column, "%q is no identifier: letters, digits, _ and -, at most 128, a letter or digit first", text)
	}
	return text
}

func (r *traceRow) instant(column string) time.Time {
	text := r.field(column)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		r.fault(column, "%q is no instant like 2026-03-02T09:00:00Z", text)
	}
	return at.UTC()
}

func (r *traceRow) count(column string) int64 {
	text := r.field(column)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		r.fault(column, "%q is no whole number from 0 up", text)
	}
	return n
}

func (r *traceRow) seconds(column string) time.Duration {
	text := r.field(column)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > longestMakespan.Seconds() {
		r.fault(column, "%q is no number of seconds from 0 to a hundred years", text)
		return 0
	}
	return time.Duration(math.Round(n*1000)) * time.Millisecond
}
