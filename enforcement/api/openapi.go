package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/schemas"
)

const (
	documentPath = "/openapi.json"
	// olderDocumentPath is for generators that know OpenAPI 3.0 only.
	olderDocumentPath = "/openapi-3.0.json"
	schemaPrefix      = "#/components/schemas/"
	contentJSON       = "application/json"
	bearer            = "bearer"
)

// spec is the OpenAPI document, and what of it the routes are held by.
type spec struct {
	document *huma.OpenAPI
	bodies   map[string]*bodyCheck
}

// Document is the OpenAPI 3.1 document of the HTTP routes, in JSON: the text of
// schemas/documents/openapi.json.
func Document() ([]byte, error) {
	s, err := newSpec()
	if err != nil {
		return nil, err
	}
	return s.text()
}

// DocumentForClients is the same in OpenAPI 3.0, served at /openapi-3.0.json for
// generators that know no other.
func DocumentForClients() ([]byte, error) {
	s, err := newSpec()
	if err != nil {
		return nil, err
	}
	s.eachNullable(func(schema *huma.Schema, member string) {
		schema.Properties[member] = schema.Properties[member].AnyOf[0] // 3.0 has no null: it is left out instead
		schema.Required = slices.DeleteFunc(schema.Required, func(name string) bool { return name == member })
	})
	return s.document.Downgrade()
}

func (s *spec) text() ([]byte, error) {
	plain, err := s.document.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, plain, "", "  "); err != nil {
		return nil, err
	}
	text.WriteByte('\n')
	return text.Bytes(), nil
}

// newSpec describes every route. huma's registry panics about two types of one name,
// which is a fault of the table and comes back as an error.
func newSpec() (s *spec, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("describe the routes: %v", cause)
		}
	}()
	registry := huma.NewMapRegistry(schemaPrefix, schemaName)
	registry.RegisterTypeAlias(reflect.TypeFor[schemas.Limit](), reflect.TypeFor[limitShape]())
	s = &spec{bodies: make(map[string]*bodyCheck), document: &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Headroom", Version: "v1",
			Description: "Decides, before a workflow execution runs and while it runs, whether the workspace's plan has room for it. " +
				"What is no success is a problem (RFC 9457), whose type is the address of its documentation.",
			License: &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: "http://127.0.0.1:8080", Description: "HEADROOM_HTTP_ADDR, unless set"}},
		Components: &huma.Components{
			Schemas: registry,
			SecuritySchemes: map[string]*huma.SecurityScheme{bearer: {
				Type: "http", Scheme: bearer,
				Description: "A token of HEADROOM_API_TOKENS. Its scopes are read, execute and admin, which holds the others. Without any tokens, on a loopback address, everybody may do everything.",
			}},
		},
		Tags: []*huma.Tag{
			{Name: "executions", Description: "Admission, progress and end of executions."},
			{Name: "features", Description: "What a workspace has of each feature, and which resources are locked."},
			{Name: "workspaces", Description: "What is known of a workspace."},
			{Name: "document", Description: "This document."},
		},
	}}
	problems := registry.Schema(reflect.TypeFor[problems.Problem](), true, "")
	for _, route := range routes() {
		s.document.AddOperation(s.operation(route, problems))
	}
	s.openAnswers()
	s.eachNullable(func(schema *huma.Schema, member string) {
		schema.Properties[member] = &huma.Schema{AnyOf: []*huma.Schema{schema.Properties[member], {Type: "null"}}}
	})
	s.describeItself("getDocument", documentPath, "This document")
	s.describeItself("getOlderDocument", olderDocumentPath, "This document in OpenAPI 3.0")
	return s, nil
}

// describeItself adds a route that serves the document, to everybody.
func (s *spec) describeItself(id, path, summary string) {
	s.document.AddOperation(&huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Tags: []string{"document"},
		Security: []map[string][]string{}, // open
		Responses: map[string]*huma.Response{"200": {
			Description: http.StatusText(http.StatusOK),
			Content:     map[string]*huma.MediaType{contentJSON: {Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}},
		}},
	})
}

// openAnswers lets answers have members that are not described: those of a later
// version. What is sent to Headroom has none.
func (s *spec) openAnswers() {
	registry := s.document.Components.Schemas
	sent := make(map[*huma.Schema]bool)
	var mark func(*huma.Schema)
	mark = func(schema *huma.Schema) {
		if schema.Ref != "" {
			schema = registry.SchemaFromRef(schema.Ref)
		}
		sent[schema] = true
		for _, inner := range schema.Properties {
			mark(inner)
		}
		if schema.Items != nil {
			mark(schema.Items)
		}
	}
	for _, body := range s.bodies {
		mark(body.schema)
	}
	for _, schema := range registry.Map() {
		if !sent[schema] {
			schema.AdditionalProperties = nil
		}
	}
}

// eachNullable calls f for the members of answers that are an object or null, which huma
// has no words for: pointers that are always written.
func (s *spec) eachNullable(f func(schema *huma.Schema, member string)) {
	registry := s.document.Components.Schemas
	for name, schema := range registry.Map() {
		for _, field := range reflect.VisibleFields(registry.TypeFromRef(schemaPrefix + name)) {
			member, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			inner := field.Type
			if inner.Kind() != reflect.Pointer || inner.Elem().Kind() != reflect.Struct || inner.Elem() == reflect.TypeFor[time.Time]() {
				continue
			}
			if options == "" && schema.Properties[member] != nil {
				f(schema, member)
			}
		}
	}
}

// schemaName is a Go type's name without what only the code needs.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for _, end := range []string{"Body", "Shape"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// limitShape is how a limit is written.
type limitShape struct {
	Value     *int64 `json:"value" minimum:"0" doc:"null without a bound."`
	Unlimited bool   `json:"unlimited"`
}

func (s *spec) operation(r route, problems *huma.Schema) *huma.Operation {
	op := &huma.Operation{
		OperationID: r.id, Method: r.method, Path: r.path, Summary: r.summary, Description: r.description, Tags: []string{tag(r.path)},
		Security:   []map[string][]string{{bearer: {}}},
		Extensions: map[string]any{"x-required-scope": string(r.scope)},
		Responses:  map[string]*huma.Response{strconv.Itoa(r.status): s.success(r)},
	}
	for _, name := range r.pathNames() {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: name, In: "path", Required: true, Schema: idSchema(), Example: exampleOf(name),
		})
	}
	for _, p := range r.query {
		op.Parameters = append(op.Parameters, &huma.Param{Name: p.name, In: "query", Description: p.doc, Schema: p.schema})
	}
	if r.method == http.MethodPost {
		longest, shortest := maxKeyLength, 1
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: keyField, In: "header", Example: "8e03978e-40d5-43dd-bc93-6894a57f9324",
			Description: "Makes it safe to send the request again: for 24 hours a key stands for one request of one token in one workspace.",
			Schema:      &huma.Schema{Type: huma.TypeString, MinLength: &shortest, MaxLength: &longest, Pattern: "^[!-~]+$"},
		})
	}
	if r.body != nil {
		schema := s.document.Components.Schemas.Schema(r.body, true, "")
		op.RequestBody = &huma.RequestBody{Required: !r.optional, Content: map[string]*huma.MediaType{contentJSON: {Schema: schema}}}
		s.bodies[r.id] = &bodyCheck{schema: schema, registry: s.document.Components.Schemas, optional: r.optional}
	}
	for _, slug := range r.slugs() {
		addProblem(op, slug, problems)
	}
	return op
}

func tag(path string) string {
	switch {
	case strings.Contains(path, "/executions"):
		return "executions"
	case strings.Contains(path, "/features/"):
		return "features"
	default:
		return "workspaces"
	}
}

func exampleOf(name string) string {
	switch name {
	case inWorkspace:
		return "ws_1"
	case inExecution:
		return "ex_1"
	default:
		return "automations"
	}
}
