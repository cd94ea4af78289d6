package schemas_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
)

// object is a JSON object whose members keep their order and may be repeated.
type object []field

type field struct {
	name  string
	value any // object, or a raw JSON text
}

type rawJSON string

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(f.name) + ":")
		if sub, ok := f.value.(object); ok {
			body, _ := sub.MarshalJSON()
			b.Write(body)
		} else {
			b.WriteString(string(f.value.(rawJSON)))
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// parse reads a body that is known to be right.
func parse(body []byte) object {
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil {
		panic(err)
	}
	var o object
	for dec.More() {
		name, _ := dec.Token()
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			panic(err)
		}
		f := field{name: name.(string), value: rawJSON(value)}
		if value[0] == '{' {
			f.value = parse(value)
		}
		o = append(o, f)
	}
	return o
}

// paths are the positions of all members, nested ones included.
func (o object) paths() [][]int {
	var list [][]int
	for i, f := range o {
		list = append(list, []int{i})
		if sub, ok := f.value.(object); ok {
			for _, p := range sub.paths() {
				list = append(list, append([]int{i}, p...))
			}
		}
	}
	return list
}

// edit is a copy of o in which apply has changed the object that holds the
// member at path, at that member's index.
func (o object) edit(path []int, apply change) object {
	o = slices.Clone(o)
	i := path[0]
	if i >= len(o) {
		return o // an earlier edit took it away
	}
	if len(path) == 1 {
		return apply(o, i)
	}
	if sub, ok := o[i].value.(object); ok {
		o[i].value = sub.edit(path[1:], apply)
	}
	return o
}

// hostile are values that may or may not be right where they are put.
func hostile() []string {
	long := func(n int) string { return quote(strings.Repeat("a", n)) }
	return []string{
		`null`, `true`, `false`, `{}`, `[]`, `[null]`, `[1]`, `["max_executions"]`, `["max_executions","nonsense"]`,
		`["max_storage_mb","max_storage_mb","max_storage_mb","max_storage_mb","max_storage_mb","max_storage_mb","max_storage_mb"]`,
		`["a","b","c","d","e","f","g","h"]`, `["max_executions","max_executions","max_executions","max_executions","max_executions","max_executions","max_executions","max_executions"]`,
		`0`, `-0`, `-0.0`, `1`, `-1`, `1.0`, `1e3`, `1E+2`, `10e-1`, `15e-1`, `1.5`, `0e5`, `0.0`, `100`, `101`, `9001`, `9001.0`, `9008`, `9009`, `9000`, `80`,
		`9007199254740991`, `9007199254740992`, `9223372036854775807`, `9223372036854775808`, `9223372036854775807.0`, `922337203685477580.7e1`, `1e18`, `1e19`, `1e40`, `1e-40`, `-9223372036854775808`,
		`""`, `" "`, `"a"`, `"-a"`, `"_a"`, `"a.b"`, `"a b"`, `"a*"`, `">"`, `"{a}"`, `"é"`, `"\u00e9"`, `"日本"`, `"\u0061"`, `"a\n"`, `"a\u0000b"`, `"\u007f"`, `"\u0085"`, `"\ufffd"`, `"\ud800"`, `"\ud83d\ude00"`, `"\/"`, `"\"\\"`, `"<>&"`,
		long(128), long(129), long(256), long(257), long(2048), long(2049), quote(strings.Repeat("日", 256)), quote(strings.Repeat("日", 257)), quote(strings.Repeat("é", 2048)),
		`"1.0"`, `"1"`, `"true"`, `"succeeded"`, `"Succeeded"`, `"not_started"`, `"cycle"`, `"ended"`, `"admission"`, `"runtime"`, `"max_executions"`, `"PlanExecutionLimitReached"`,
		`"0192f3a1-7c1e-7b4e-9d3a-5f6b7c8d9e0f"`, `"0192F3A1-7C1E-7B4E-9D3A-5F6B7C8D9E0F"`, `"0192f3a17c1e7b4e9d3a5f6b7c8d9e0f"`, `"0192f3a1-7c1e-7b4e-9d3a-5f6b7c8d9e0g"`, `"0192f3a1-7c1e-7b4e-9d3a5-f6b7c8d9e0f"`, `"{0192f3a1-7c1e-7b4e-9d3a-5f6b7c8d9e0f}"`,
		`"2026-11-30T10:00:00Z"`, `"2026-11-30T10:00:00z"`, `"2026-11-30t10:00:00Z"`, `"2026-11-30 10:00:00Z"`, `"2026-11-30T10:00:00"`, `"2026-11-30T10:00Z"`, `"2026-11-30"`, `"2026-11-30T10:00:00.5Z"`, `"2026-11-30T10:00:00,5Z"`, `"2026-11-30T10:00:00.Z"`, `"2026-11-30T10:00:00.1234567890123Z"`,
		`"2026-11-30T10:00:00+01:00"`, `"2026-11-30T10:00:00-23:59"`, `"2026-11-30T10:00:00+24:00"`, `"2026-11-30T10:00:00+01:60"`, `"2026-11-30T10:00:00+0100"`, `"2026-11-30T10:00:00-00:00"`, `"2026-02-29T10:00:00Z"`, `"2028-02-29T10:00:00Z"`, `"2026-13-01T00:00:00Z"`, `"2026-11-31T00:00:00Z"`, `"2026-11-30T24:00:00Z"`, `"2026-11-30T1:00:00Z"`, `"2026-11-30T23:59:60Z"`, `"2016-12-31T23:59:60Z"`,
		`"0000-01-01T00:00:00Z"`, `"0001-01-01T00:00:00Z"`, `"0999-12-31T23:59:59Z"`, `"1000-01-01T00:00:00+23:59"`, `"2999-12-31T23:59:59-23:59"`, `"3000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59Z"`, `"+2026-11-30T10:00:00Z"`, `"2026-11-30T10:00:00Z "`, `"２026-11-30T10:00:00Z"`,
		`{"value":5,"unlimited":false}`, `{"value":null,"unlimited":true}`, `{"value":5,"unlimited":true}`, `{"value":null,"unlimited":false}`, `{"value":5}`, `{"unlimited":true}`, `{"value":-1}`, `{"value":5,"unlimited":null}`, `{"value":5,"unlimited":0}`, `{"value":5.0,"unlimited":false,"more":[{"a":1}]}`,
		`{"start":"2026-11-01T00:00:00Z","end":"2026-12-01T00:00:00Z"}`, `{"start":"2026-11-01T00:00:00Z"}`, `{"START":"2026-11-01T00:00:00Z","end":"2026-12-01T00:00:00Z"}`,
		`"headroom.execution.requested.v1"`, `"headroom.execution.requested.v2"`, `"headroom.decision.made.v10"`, `"headroom.decision.made.v"`, `"headroom.decision.made.v1.1"`, `"headroom.Decision.made.v1"`, `"com.example.other"`,
	}
}

// structural are changes to which fields there are, not to what they hold.
func structural() []change {
	rename := func(to func(string) string) change {
		return func(o object, i int) object {
			o[i].name = to(o[i].name)
			return o
		}
	}
	return []change{
		func(o object, i int) object { return slices.Delete(o, i, i+1) },
		rename(strings.ToUpper),
		rename(func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }),
		rename(func(s string) string { return s + " " }),
		rename(func(s string) string { return strings.ReplaceAll(s, "s", "ſ") }), // folds to s in encoding/json
		rename(func(s string) string { return strings.ReplaceAll(s, "_", "") }),
		func(o object, i int) object { return append(o, o[i]) }, // twice
		func(o object, i int) object { return append(o, field{o[i].name, rawJSON("null")}) },
		func(o object, i int) object { return append(o, field{strings.ToUpper(o[i].name), rawJSON(`"x"`)}) },
		func(o object, i int) object { // first becomes last
			f := o[i]
			return append(slices.Delete(o, i, i+1), f)
		},
		func(o object, _ int) object {
			return append(o, field{"unknown", rawJSON(`{"a":[1,{"b":"}]"}],"a":null,"\"":"\\"}`)})
		},
	}
}

// broken are bodies at fault as a whole.
func broken(body []byte) [][]byte {
	text := string(body)
	return [][]byte{
		nil, []byte(" "), []byte("null"), []byte("[]"), []byte("[" + text + "]"), []byte(`"text"`), []byte("1"), []byte("{}"),
		body[:len(body)-1], body[1:], []byte(text + "x"), []byte(text + text), []byte(text + " \n"), []byte("\xef\xbb\xbf" + text), []byte("\n\t " + text),
		[]byte(strings.Replace(text, `"id":"`, `"id":"`+"\xff", 1)), []byte(strings.Replace(text, `{`, `{"x":"`+"\xc3\x28"+`",`, 1)),
		[]byte(strings.Replace(text, `"data"`, `"d\u0061ta"`, 1)), []byte(strings.Replace(text, `"id"`, `"\u0069d"`, 1)), []byte(strings.Replace(text, `{`, `{"\u0069d":"again",`, 1)),
		[]byte(strings.Replace(text, `:`, ` : `, 1)), []byte(strings.ReplaceAll(text, `,`, " ,\r\n\t")), []byte(strings.Replace(text, `"`, `'`, 2)), []byte(strings.Replace(text, `}`, `,}`, 1)),
		[]byte(strings.Replace(text, `{`, `{"x":01,`, 1)), []byte(strings.Replace(text, `{`, `{"x":NaN,`, 1)), []byte(strings.Replace(text, `{`, "{\"x\":\"\n\",", 1)), []byte(strings.Replace(text, `{`, "{\"x\":"+strings.Repeat("[", 20_000)+",", 1)),
	}
}

// mutations calls visit with every body that one change to a right one makes,
// and with many that take a few changes. The same every time.
func mutations(c codec, visit func(body []byte)) {
	random := rand.New(rand.NewPCG(9001, uint64(len(c.name))))
	values, changes := hostile(), structural()
	for s := range c.samples {
		body := mustEncode(c, s)
		visit(body)
		for _, b := range broken(body) {
			visit(b)
		}
		whole := parse(body)
		emit := func(o object) {
			b, _ := o.MarshalJSON()
			visit(b)
		}
		if s == 0 {
			oneChange(whole, values, changes, emit)
		}
		fewChanges(whole, values, changes, random, emit)
	}
}

type change = func(object, int) object

func set(v string) change {
	return func(o object, i int) object {
		o[i].value = rawJSON(v)
		return o
	}
}

// oneChange makes the changes at every place; the more places there are, whose
// fields are much alike, the fewer at each, and not the same at the next.
func oneChange(whole object, values []string, changes []change, emit func(object)) {
	paths := whole.paths()
	stride := 1 + len(paths)/8
	changes = slices.Clone(changes)
	for _, v := range values {
		changes = append(changes, set(v))
	}
	for i, p := range paths {
		for j, c := range changes {
			if (i+j)%stride == 0 {
				emit(whole.edit(p, c))
			}
		}
	}
}

func fewChanges(whole object, values []string, changes []change, random *rand.Rand, emit func(object)) {
	paths := whole.paths()
	for range 500 {
		o := whole
		for range 1 + random.IntN(3) {
			c := set(values[random.IntN(len(values))])
			if random.IntN(3) == 0 {
				c = changes[random.IntN(len(changes))]
			}
			o = o.edit(paths[random.IntN(len(paths))], c)
		}
		emit(o)
	}
}
