package schemas_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/headroomhq/headroom/schemas"
)

func asyncAPI(t *testing.T) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := yaml.Unmarshal(schemas.AsyncAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// at a path of a document, or nil.
func dig(node any, path ...string) any {
	for _, step := range path {
		object, ok := node.(map[string]any)
		if !ok {
			return nil
		}
		node = object[step]
	}
	return node
}

func TestEveryEventTypeHasASchema(t *testing.T) {
	t.Parallel()
	if len(schemas.EventTypes) != len(codecs()) {
		t.Errorf("%d event types, %d are tested", len(schemas.EventTypes), len(codecs()))
	}
	for _, typ := range schemas.EventTypes {
		body, err := schemas.JSONSchema(typ)
		if err != nil {
			t.Error(err)
			continue
		}
		var doc map[string]any
		if err := json.Unmarshal(body, &doc); err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		if dig(doc, "properties", "type", "const") != typ || doc["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("the schema of %s describes %v of draft %v", typ, dig(doc, "properties", "type", "const"), doc["$schema"])
		}
		if id, _ := doc["$id"].(string); !strings.HasSuffix(id, "/"+strings.TrimPrefix(typ, "headroom.")+".schema.json") {
			t.Errorf("the schema of %s has the id %s", typ, id)
		}
	}
	for _, typ := range []string{"", "headroom.execution.requested.v2", "../events", "asyncapi"} {
		if _, err := schemas.JSONSchema(typ); err == nil {
			t.Errorf("there is a schema of %q", typ)
		}
	}
}

func TestAsyncAPIHasEverySubjectAndItsStream(t *testing.T) {
	t.Parallel()
	documented := map[string]string{}
	for _, channel := range dig(asyncAPI(t), "channels").(map[string]any) {
		if address, ok := dig(channel, "address").(string); ok {
			documented[address] = dig(channel, "x-stream").(string)
		}
	}
	want := map[string]string{}
	for _, stream := range (schemas.Topology{}).Streams() {
		for _, subject := range stream.Subjects {
			address := strings.Replace(subject, "*.*", "{room}.{kind}", 1)
			want[strings.Replace(address, "*", "{workspace}", 1)] = stream.Name
		}
	}
	if !maps.Equal(want, documented) {
		t.Errorf("documented are %v, want %v", documented, want)
	}
}

func TestAsyncAPIHasEveryEventTypeWithItsSchema(t *testing.T) {
	t.Parallel()
	schemaOf := map[string]string{}
	for _, message := range dig(asyncAPI(t), "components", "messages").(map[string]any) {
		ref, _ := dig(message, "payload", "schema", "$ref").(string)
		schemaOf[dig(message, "name").(string)] = ref
	}
	for _, typ := range schemas.EventTypes {
		if want := "./" + strings.TrimPrefix(typ, "headroom.") + ".schema.json"; schemaOf[typ] != want {
			t.Errorf("message %s refers to %q, want %s", typ, schemaOf[typ], want)
		}
	}
}

func TestEveryReferenceInAsyncAPIResolves(t *testing.T) {
	t.Parallel()
	doc := asyncAPI(t)
	refs := map[string]bool{}
	references(doc, refs)
	if len(refs) < 20 {
		t.Fatalf("only %d references were found", len(refs))
	}
	for ref := range refs {
		if path, local := strings.CutPrefix(ref, "#/"); local {
			if dig(doc, strings.Split(path, "/")...) == nil {
				t.Errorf("%s leads nowhere", ref)
			}
			continue
		}
		if _, err := os.Stat(filepath.Join("documents", ref)); err != nil {
			t.Errorf("%s leads nowhere: %v", ref, err)
		}
	}
}

func references(node any, refs map[string]bool) {
	switch node := node.(type) {
	case []any:
		for _, n := range node {
			references(n, refs)
		}
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok {
			refs[ref] = true
		}
		for _, n := range node {
			references(n, refs)
		}
	}
}

// Each operation's messages have to be among those of its channel.
func TestAsyncAPIOperationsUseTheirChannelsMessages(t *testing.T) {
	t.Parallel()
	doc := asyncAPI(t)
	used := map[string]bool{}
	for name, operation := range dig(doc, "operations").(map[string]any) {
		channel := dig(operation, "channel", "$ref").(string)
		used[channel] = true
		for _, message := range dig(operation, "messages").([]any) {
			if ref := dig(message, "$ref").(string); !strings.HasPrefix(ref, channel+"/messages/") {
				t.Errorf("operation %s on %s has the message %s", name, channel, ref)
			}
		}
	}
	for name := range dig(doc, "channels").(map[string]any) {
		if !used["#/channels/"+name] && name != "reply" {
			t.Errorf("no operation uses channel %s", name)
		}
	}
	if dig(doc, "info", "title") != "Headroom" || dig(doc, "asyncapi") != "3.0.0" {
		t.Errorf("it is %v of %v", dig(doc, "asyncapi"), dig(doc, "info", "title"))
	}
}

func TestAsyncAPINamesEveryReason(t *testing.T) {
	t.Parallel()
	headers := dig(asyncAPI(t), "components", "messages", "deadLetter", "headers", "properties").(map[string]any)
	said, _ := dig(headers["Headroom-Reason"], "description").(string)
	for _, reason := range schemas.Reasons {
		if !strings.Contains(said, string(reason)) {
			t.Errorf("the dead letter's reason does not mention %s", reason)
		}
	}
	for _, name := range []string{"Reason", "Subject", "Sequence", "Deliveries", "First", "Last", "Truncated"} {
		if !slices.Contains(slices.Collect(maps.Keys(headers)), "Headroom-"+name) {
			t.Errorf("header Headroom-%s is not documented", name)
		}
	}
}
