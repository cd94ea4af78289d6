package schemas

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Bounds of what an event may carry.
const (
	// MaxCount is the largest number of bytes or tasks that can be reported: the
	// last integer that a double, and so a Lua script or a browser, holds exactly.
	MaxCount = 1<<53 - 1
	// maxLabel and maxNote bound names and free text, in characters.
	maxLabel = 256
	maxNote  = 2048
)

// presence says whether a field must be there.
type presence bool

const (
	required presence = true
	optional presence = false
)

// fields is one object of an event on its way in or out. A payload describes
// itself once, by a call per field (see payload), and that description serves
// both ways: reading, each call fills the field from the object and checks it;
// writing, it only checks. The first fault is kept and the rest is let be.
type fields struct {
	parent  *fields
	name    string // within the parent
	reading bool
	members []member
	fault   *DecodeError
}

// described is an object with fields.
type described interface{ fields(f *fields) }

// key is the field's full path, for a fault.
func (f *fields) key(name string) string {
	if f.name == "" {
		return name
	}
	if f.parent == nil {
		return f.name + "." + name
	}
	return f.parent.key(f.name) + "." + name
}

func (f *fields) fail(e *DecodeError) {
	if f.fault == nil {
		f.fault = e
	}
}

func (f *fields) failValue(name string, value any, must string) {
	text, isText := value.(string)
	if isText && len(text) > 64 {
		value = text[:64]
	}
	if isText {
		f.fail(invalid(f.key(name), "is %q, must be %s", value, must))
		return
	}
	f.fail(invalid(f.key(name), "is %v, must be %s", value, must))
}

// find is the raw value of a field. A null counts as absent, as CloudEvents
// has it. A field that stands there twice is refused: which of the two counts
// would be up to each reader.
func (f *fields) find(name string, p presence) []byte {
	var value []byte
	for i := range f.members {
		if string(f.members[i].name) != name {
			continue
		}
		if value != nil {
			f.fail(malformed("%s stands there twice", f.key(name)))
			return nil
		}
		value = f.members[i].value
	}
	if value == nil || value[0] == 'n' {
		if p == required {
			f.fail(missing(f.key(name)))
		}
		return nil
	}
	return value
}

// findText is the text of a string field; ok is false where there is none.
func (f *fields) findText(name string, p presence) (text []byte, ok bool) {
	raw := f.find(name, p)
	if raw == nil {
		return nil, false
	}
	if raw[0] != '"' {
		f.fail(invalid(f.key(name), "must be a string"))
		return nil, false
	}
	return unquote(raw), true
}

// text is a string that satisfies ok; must says what that is.
func (f *fields) text(name string, v *string, p presence, ok func(string) bool, must string) {
	if f.reading {
		text, found := f.findText(name, p)
		if !found {
			return
		}
		*v = string(text)
	} else if *v == "" && p == optional {
		return
	}
	if !ok(*v) {
		f.failValue(name, *v, must)
	}
}

func (f *fields) id(name string, v *string) {
	f.text(name, v, required, ValidID, IDRule)
}

func (f *fields) uuid(name string, v *string) {
	f.text(name, v, required, validUUID, "a UUID")
}

func (f *fields) optionalUUID(name string, v **string) {
	if f.reading {
		text, found := f.findText(name, optional)
		if !found {
			return
		}
		*v = new(string(text))
	}
	if *v != nil && !validUUID(**v) {
		f.failValue(name, **v, "a UUID")
	}
}

// label is a name that is safe in a header: 1 to 256 characters, none of them a
// control character.
func (f *fields) label(name string, v *string, p presence) {
	f.text(name, v, p, ValidLabel, "1 to 256 characters without control characters")
}

// tag is a label that may be empty.
func (f *fields) tag(name string, v *string, p presence) {
	f.text(name, v, p, func(s string) bool { return s == "" || ValidLabel(s) },
		"up to 256 characters without control characters")
}

// note is free text of up to 2048 characters.
func (f *fields) note(name string, v *string, p presence) {
	f.text(name, v, p, func(s string) bool { return utf8.RuneCountInString(s) <= maxNote }, "up to 2048 characters")
}

// ValidLabel reports whether s can identify an event or name its source: 1 to 256
// characters without control characters.
func ValidLabel(s string) bool {
	if s == "" || len(s) > maxLabel && utf8.RuneCountInString(s) > maxLabel {
		return false
	}
	for _, c := range s {
		if c < 0x20 || c >= 0x7f && c <= 0x9f || c == utf8.RuneError {
			return false
		}
	}
	return true
}

// word is one of a fixed set of strings.
func word[S ~string](f *fields, name string, v *S, among []S) {
	if f.reading {
		text, found := f.findText(name, required)
		if !found {
			return
		}
		for _, w := range among {
			if string(w) == string(text) {
				*v = w
				return
			}
		}
		*v = S(text)
	}
	if !slices.Contains(among, *v) {
		f.failValue(name, string(*v), "one of "+list(among))
	}
}

func list[S ~string](words []S) string {
	var b bytes.Buffer
	for i, w := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(string(w)))
	}
	return b.String()
}

func (f *fields) boolean(name string, v *bool, p presence) {
	if !f.reading {
		return
	}
	switch raw := f.find(name, p); {
	case raw == nil:
	case raw[0] == 't', raw[0] == 'f':
		*v = raw[0] == 't'
	default:
		f.fail(invalid(f.key(name), "must be true or false"))
	}
}

// bounds is a closed range of integers.
type bounds struct{ low, high int64 }

// natural is any number that fits, counted is what an engine may report.
func natural() bounds { return bounds{0, math.MaxInt64} }
func counted() bounds { return bounds{0, MaxCount} }

func number[N ~int | ~int64](f *fields, name string, v *N, in bounds) {
	if f.reading {
		n, found := f.findInteger(name, required)
		if !found {
			return
		}
		*v = N(n)
	}
	f.inBounds(name, int64(*v), in)
}

func (f *fields) optionalNumber(name string, v **int64, in bounds) {
	if f.reading {
		n, found := f.findInteger(name, optional)
		if !found {
			return
		}
		*v = &n
	}
	if *v != nil {
		f.inBounds(name, **v, in)
	}
}

func (f *fields) findInteger(name string, p presence) (int64, bool) {
	raw := f.find(name, p)
	if raw == nil {
		return 0, false
	}
	if raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		f.fail(invalid(f.key(name), "must be a number"))
		return 0, false
	}
	n, ok := integer(raw)
	if !ok {
		f.failValue(name, string(raw), "a whole number of 64 bits")
	}
	return n, ok
}

func (f *fields) inBounds(name string, n int64, in bounds) {
	if n < in.low || n > in.high {
		f.fail(invalid(f.key(name), "is %d, must be %d to %d", n, in.low, in.high))
	}
}

// instant is a time of the years 1000 to 2999 (see instantShape), taken to UTC.
// The zero time is an absent one.
func (f *fields) instant(name string, v *time.Time, p presence) {
	if f.reading {
		text, found := f.findText(name, p)
		if !found {
			return
		}
		if !instantShape(text) || v.UnmarshalText(text) != nil {
			f.failValue(name, string(text), "an RFC 3339 time such as 2026-11-30T15:04:05.123Z")
			return
		}
	}
	*v = v.UTC().Round(0)
	if v.IsZero() {
		if p == required {
			f.fail(missing(f.key(name)))
		}
		return
	}
	if !f.reading && (v.Year() < 1000 || v.Year() > 2999) {
		f.failValue(name, *v, "of the years 1000 to 2999")
	}
}

func (f *fields) optionalInstant(name string, v **time.Time) {
	var t time.Time
	if !f.reading {
		if *v == nil {
			return
		}
		t = **v
	}
	f.instant(name, &t, presence(!f.reading))
	if !t.IsZero() {
		*v = new(t) // writing, the caller's own time stays as it is
	}
}

// object is a nested object.
func (f *fields) object(name string, p presence, inner described) {
	sub := fields{parent: f, name: name, reading: f.reading}
	if f.reading {
		raw := f.find(name, p)
		if raw == nil {
			return
		}
		if raw[0] != '{' {
			f.fail(invalid(f.key(name), "must be an object"))
			return
		}
		sub.members = members(raw)
	}
	inner.fields(&sub)
	if sub.fault != nil {
		f.fail(sub.fault)
	}
}
