package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/schemas"
)

// bodyCheck holds bodies against their schema in the OpenAPI document.
type bodyCheck struct {
	schema   *huma.Schema
	registry huma.Registry
	// optional bodies may be left out: they are then an empty object.
	optional bool
}

// read checks a body and writes it in one way: members in order, whole numbers as
// digits. The error is a Problem with every fault.
func (b *bodyCheck) read(raw []byte) ([]byte, error) {
	if len(raw) == 0 && b.optional {
		return []byte("{}"), nil
	}
	switch {
	case len(raw) == 0:
		return nil, problems.New(problems.Malformed, "the body is empty; send a JSON object")
	case !utf8.Valid(raw):
		return nil, problems.New(problems.Malformed, "the body is not UTF-8")
	case !json.Valid(raw):
		return nil, problems.New(problems.Malformed, fmt.Sprintf("the body is not one JSON value: %v", json.Unmarshal(raw, new(json.RawMessage))))
	}
	t := &tree{decoder: json.NewDecoder(bytes.NewReader(raw))}
	t.decoder.UseNumber()
	value, err := t.value("", 0)
	if errors.Is(err, errTooDeep) {
		return nil, problems.New(problems.Malformed, errTooDeep.Error())
	}
	if err != nil {
		return nil, problems.New(problems.Malformed, "the body cannot be read").Because(err)
	}
	faults := append(t.twice, b.check(b.schema, value, "")...)
	if len(faults) > 0 {
		return nil, problems.InvalidRequest(faults...)
	}
	return encoded(value)
}

// tree reads JSON that is valid, and notes the names that stand in one object twice:
// which of the two counts would be up to each reader.
type tree struct {
	decoder *json.Decoder
	twice   []problems.FieldFault
}

// maxDepth is how deep a body may nest, a few levels more than any request does. Every
// level makes the paths of all that is below it longer.
const maxDepth = 16

var errTooDeep = fmt.Errorf("the body is nested more than %d levels deep", maxDepth)

func (t *tree) value(path string, depth int) (any, error) {
	token, err := t.decoder.Token()
	if err != nil {
		return nil, err
	}
	if _, nested := token.(json.Delim); nested && depth >= maxDepth {
		return nil, errTooDeep
	}
	switch token {
	case json.Delim('{'):
		return t.object(path, depth+1)
	case json.Delim('['):
		return t.list(path, depth+1)
	}
	if number, ok := token.(json.Number); ok {
		return wholeNumber(number), nil
	}
	return token, nil
}

func (t *tree) object(path string, depth int) (any, error) {
	members := make(map[string]any)
	for t.decoder.More() {
		token, err := t.decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // nothing else may stand there
		if _, there := members[name]; there {
			t.twice = append(t.twice, problems.FieldFault{Field: within(path, name), Detail: "stands there twice"})
		}
		if members[name], err = t.value(within(path, name), depth); err != nil {
			return nil, err
		}
	}
	_, err := t.decoder.Token()
	return members, err
}

func (t *tree) list(path string, depth int) (any, error) {
	elements := []any{}
	for t.decoder.More() {
		element, err := t.value(path+"["+strconv.Itoa(len(elements))+"]", depth)
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	_, err := t.decoder.Token()
	return elements, err
}

// within is the path of a member. A name comes from the client: no more of it is told
// than is needed to find it.
func within(path, name string) string {
	const enough = 64
	if len(name) > enough {
		name = strings.ToValidUTF8(name[:enough], "") + "…"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// wholeNumber is an int64 where the number is one, however it is written (3, 3.0 and
// 30e-1 are the same to JSON Schema), and else the number as it stands.
func wholeNumber(number json.Number) any {
	if n, err := number.Int64(); err == nil {
		return n
	}
	if f, err := number.Float64(); err == nil && f >= -maxSafe && f <= maxSafe && f == math.Trunc(f) {
		return int64(f)
	}
	return number
}

// check lists what the schema does not allow of a value.
func (b *bodyCheck) check(s *huma.Schema, value any, path string) []problems.FieldFault {
	for s.Ref != "" {
		s = b.registry.SchemaFromRef(s.Ref)
	}
	fault := func(format string, args ...any) []problems.FieldFault {
		field := path
		if field == "" {
			field = "body"
		}
		return []problems.FieldFault{{Field: field, Detail: fmt.Sprintf(format, args...)}}
	}
	switch s.Type {
	case huma.TypeObject:
		members, ok := value.(map[string]any)
		if !ok {
			return fault("must be an object")
		}
		return b.checkMembers(s, members, path)
	case huma.TypeArray:
		elements, ok := value.([]any)
		if !ok {
			return fault("must be a list")
		}
		return b.checkElements(s, elements, path, fault)
	case huma.TypeInteger:
		n, ok := value.(int64)
		if low, high := bound(s.Minimum, 0), bound(s.Maximum, maxSafe); !ok || n < low || n > high {
			return fault("must be a whole number from %d to %d", low, high)
		}
		return nil
	case huma.TypeBoolean:
		if _, ok := value.(bool); !ok {
			return fault("must be true or false")
		}
		return nil
	default:
		text, ok := value.(string)
		if !ok {
			return fault("must be a string")
		}
		if must := textRule(s, text); must != "" {
			return fault("%s", must)
		}
		return nil
	}
}

// maxSafe is the largest integer that every reader of JSON holds exactly.
const maxSafe = 1<<53 - 1

func bound(stated *float64, otherwise int64) int64 {
	if stated == nil {
		return otherwise
	}
	return int64(*stated)
}

func (b *bodyCheck) checkMembers(s *huma.Schema, members map[string]any, path string) []problems.FieldFault {
	var faults []problems.FieldFault
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		inner, known := s.Properties[name]
		if !known {
			faults = append(faults, problems.FieldFault{Field: within(path, name), Detail: "is not a field of this request"})
			continue
		}
		faults = append(faults, b.check(inner, members[name], within(path, name))...)
	}
	for _, name := range s.Required {
		if _, there := members[name]; !there {
			faults = append(faults, problems.FieldFault{Field: within(path, name), Detail: "is missing"})
		}
	}
	return faults
}

func (b *bodyCheck) checkElements(s *huma.Schema, elements []any, path string, fault func(string, ...any) []problems.FieldFault) []problems.FieldFault {
	if s.MinItems != nil && len(elements) < *s.MinItems || s.MaxItems != nil && len(elements) > *s.MaxItems {
		return fault("must have %s elements", between(s.MinItems, s.MaxItems))
	}
	var faults []problems.FieldFault
	for i, element := range elements {
		faults = append(faults, b.check(s.Items, element, path+"["+strconv.Itoa(i)+"]")...)
	}
	return faults
}

func between(low, high *int) string {
	if low == nil {
		low = new(int)
	}
	if high == nil {
		return fmt.Sprintf("at least %d", *low)
	}
	return fmt.Sprintf("%d to %d", *low, *high)
}

// textRule is what a string must be and is not, or empty.
func textRule(s *huma.Schema, text string) string {
	switch {
	case s.Pattern == textPattern && strings.ContainsRune(text, 0):
		return "must not hold a NUL" // which PostgreSQL cannot store
	case len(s.Enum) > 0:
		if !slices.Contains(s.Enum, any(text)) {
			words := make([]string, len(s.Enum))
			for i, word := range s.Enum {
				words[i] = fmt.Sprint(word)
			}
			return "must be one of " + strings.Join(words, ", ")
		}
	case s.Pattern == idPattern:
		if !schemas.ValidID(text) {
			return idRule
		}
	case s.Format == "date-time":
		if new(time.Time).UnmarshalText([]byte(text)) != nil {
			return instantRule
		}
	case s.MaxLength != nil && utf8.RuneCountInString(text) > *s.MaxLength:
		return fmt.Sprintf("must have at most %d characters", *s.MaxLength)
	}
	return ""
}
