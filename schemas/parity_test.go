package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/headroomhq/headroom/schemas"
)

// compiled is the published schema of an event type, formats asserted, and the
// names that it knows.
func compiled(t testing.TB, typ string) (schema *jsonschema.Schema, known map[string]bool) {
	t.Helper()
	body, err := schemas.JSONSchema(typ)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("schema of %s: %v", typ, err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("mem://"+typ, doc); err != nil {
		t.Fatalf("schema of %s: %v", typ, err)
	}
	schema, err = compiler.Compile("mem://" + typ)
	if err != nil {
		t.Fatalf("schema of %s: %v", typ, err)
	}
	known = map[string]bool{}
	knownNames(doc, known)
	return schema, known
}

// bySchema is the verdict of the JSON Schema, on text that RFC 8259 allows between
// systems at all: UTF-8, and none of the known names twice in an object. Neither
// is something that a schema can see.
func bySchema(schema *jsonschema.Schema, known map[string]bool, body []byte) error {
	if !utf8.Valid(body) {
		return errors.New("not UTF-8")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	if err := schema.Validate(value); err != nil {
		return err
	}
	return noneTwice(json.NewDecoder(bytes.NewReader(body)), known)
}

// knownNames are the names of all properties in a schema.
func knownNames(schema any, known map[string]bool) {
	switch node := schema.(type) {
	case []any:
		for _, n := range node {
			knownNames(n, known)
		}
	case map[string]any:
		if properties, ok := node["properties"].(map[string]any); ok {
			for name := range properties {
				known[name] = true
			}
		}
		for _, n := range node {
			knownNames(n, known)
		}
	}
}

// noneTwice reads one value and refuses an object with a known name twice.
func noneTwice(dec *json.Decoder, known map[string]bool) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') && token != json.Delim('[') {
		return nil
	}
	seen := map[string]bool{}
	for dec.More() {
		if token == json.Delim('{') {
			name, err := dec.Token()
			if err != nil {
				return err
			}
			if seen[name.(string)] && known[name.(string)] {
				return errors.New("twice: " + name.(string))
			}
			seen[name.(string)] = true
		}
		if err := noneTwice(dec, known); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// workspaceOf is the workspace that a body names, if it names one.
func workspaceOf(body []byte) string {
	var event, data map[string]json.RawMessage
	var ws string
	if json.Unmarshal(body, &event) == nil && json.Unmarshal(event["data"], &data) == nil {
		_ = json.Unmarshal(data["workspace_id"], &ws)
	}
	return ws
}

func TestDecodeAndTheJSONSchemasAgree(t *testing.T) {
	t.Parallel()
	for _, c := range codecs() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			schema, known := compiled(t, c.typ)
			verdicts := map[schemas.Reason]int{}
			total := 0
			mutations(c, func(body []byte) {
				total++
				reason := reasonOf(t, c, "headroom.x."+workspaceOf(body), body)
				verdicts[reason]++
				if reason == schemas.ReasonTooLarge || reason == schemas.ReasonSubjectMismatch {
					t.Fatalf("a body of the generator is %s: %.300s", reason, body)
				}
				if err := bySchema(schema, known, body); (err == nil) != (reason == "") {
					t.Errorf("Decode says %q, the schema says %v, of %.1500s", reason, err, body)
				}
			})
			t.Logf("%d bodies: %v", total, verdicts)
			if total < 1000 {
				t.Errorf("only %d bodies, want at least 1000", total)
			}
			if good := verdicts[""]; good < total/20 || good > total*19/20 {
				t.Errorf("%d of %d bodies accepted: too lopsided to prove anything", good, total)
			}
			for _, reason := range []schemas.Reason{
				schemas.ReasonSyntax, schemas.ReasonMissingField, schemas.ReasonInvalidField,
				schemas.ReasonUnknownType, schemas.ReasonUnknownVersion,
			} {
				if verdicts[reason] == 0 {
					t.Errorf("no body was refused as %s", reason)
				}
			}
		})
	}
}

// reasonOf is why Decode refuses the body, and "" when it does not. Whatever it
// accepts must encode, and decode to the same again.
func reasonOf(t testing.TB, c codec, subject string, body []byte) schemas.Reason {
	t.Helper()
	event, err := c.decode(subject, body)
	if err == nil {
		mustRoundTrip(t, c, subject, event)
		return ""
	}
	var fault *schemas.DecodeError
	if !errors.As(err, &fault) {
		t.Fatalf("Decode fails with %T (%v), want *DecodeError", err, err)
	}
	if fault.Reason != schemas.ReasonSyntax && fault.Reason != schemas.ReasonTooLarge && fault.Field == "" {
		t.Fatalf("%v names no field", fault)
	}
	if strings.ContainsAny(fault.Error(), "\r\n") {
		t.Fatalf("%q has a line break, which no header can carry", fault.Error())
	}
	return fault.Reason
}
