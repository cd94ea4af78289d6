package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/problems"
)

var update = flag.Bool("update", false, "write the files that are made from the routes")

const (
	documentFile = "../../schemas/documents/openapi.json"
	clientFile   = "client_generated_test.go"
)

//go:generate go test -count=1 -run ^TestTheDocumentIsCurrent$ -update .

func TestTheDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	made, err := api.Document()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(documentFile, made, 0o644); err != nil {
			t.Fatal(err)
		}
		makeClient(t)
	}
	kept, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), string(made)); diff != "" {
		t.Errorf("the document is not what the routes make; run: go generate ./enforcement/api\n%s", diff)
	}
}

// makeClient has oapi-codegen write the client that TestAGeneratedClient talks with. It
// knows OpenAPI 3.0 only.
func makeClient(t *testing.T) {
	t.Helper()
	older, err := api.DocumentForClients()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "openapi-3.0.json")
	if err := os.WriteFile(source, older, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../../.ci/tools/go.mod", "oapi-codegen",
		"-package", "api_test", "-generate", "types,client", "-o", clientFile, source)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		t.Fatalf("make the client: %v\n%s", err, said.String())
	}
	// A file that says first of all that it is generated is read as one.
	text, err := os.ReadFile(clientFile)
	if err != nil {
		t.Fatal(err)
	}
	text = text[bytes.Index(text, []byte("// Code generated")):]
	if err := os.WriteFile(clientFile, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTheDocumentIsValid(t *testing.T) {
	t.Parallel()
	v := documentValidator(t)
	if valid, faults := v.ValidateDocument(); !valid {
		for _, fault := range faults {
			t.Errorf("%s: %s", fault.Message, fault.Reason)
			for _, detail := range fault.SchemaValidationErrors {
				t.Errorf("  %s: %s", detail.KeywordLocation, detail.Reason)
			}
		}
	}
}

// documentValidator is a validator of the document and of what it describes.
func documentValidator(t *testing.T) validator.Validator {
	t.Helper()
	text, err := api.Document()
	if err != nil {
		t.Fatal(err)
	}
	document, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	v, faults := validator.NewValidator(document, config.WithFormatAssertions())
	for _, fault := range faults {
		t.Fatal(fault)
	}
	return v
}

// described is as much of the document as the tests look at.
type described struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Security    []map[string][]string
		Responses   map[string]struct {
			Content map[string]struct {
				Examples map[string]any
			}
		}
	}
}

func readDocument(t *testing.T) described {
	t.Helper()
	text, err := api.Document()
	if err != nil {
		t.Fatal(err)
	}
	var d described
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheDocumentHasEveryProblem(t *testing.T) {
	t.Parallel()
	told := make(map[string]bool)
	for _, methods := range readDocument(t).Paths {
		for _, operation := range methods {
			for _, answer := range operation.Responses {
				for slug := range answer.Content["application/problem+json"].Examples {
					told[slug] = true
				}
			}
		}
	}
	for _, kind := range problems.Types() {
		// Of a path or method that is not there, a document can say nothing.
		if !told[kind.Slug] && kind.Slug != "not-found" && kind.Slug != "method-not-allowed" {
			t.Errorf("no route tells of %s", kind.Slug)
		}
	}
}

func TestTheDocumentHasEveryRouteOfTheContract(t *testing.T) {
	t.Parallel()
	document := readDocument(t)
	for _, line := range strings.Split(strings.TrimSpace(`
post  /v1/workspaces/{workspace_id}/executions
get   /v1/workspaces/{workspace_id}/executions
patch /v1/workspaces/{workspace_id}/executions/{execution_id}
post  /v1/workspaces/{workspace_id}/executions/{execution_id}/complete
post  /v1/workspaces/{workspace_id}/features/{feature}/consume
post  /v1/workspaces/{workspace_id}/features/{feature}/release
get   /v1/workspaces/{workspace_id}/features/{feature}/resources
put   /v1/workspaces/{workspace_id}/features/{feature}/resources/keep
get   /v1/workspaces/{workspace_id}
get   /v1/workspaces/{workspace_id}/subscriptions
get   /v1/workspaces/{workspace_id}/decisions
post  /v1/workspaces/{workspace_id}/check
post  /v1/workspaces/{workspace_id}/invalidate
post  /api/core/invalidate-plan/{workspace_id}
get   /openapi.json
get   /openapi-3.0.json
`), "\n") {
		words := strings.Fields(line)
		operation, there := document.Paths[words[1]][words[0]]
		if !there {
			t.Errorf("%s is not described", line)
		}
		delete(document.Paths[words[1]], words[0])
		if open := len(operation.Security) == 0; open != strings.HasPrefix(words[1], "/openapi") {
			t.Errorf("%s: open is %t", line, open)
		}
	}
	for path, methods := range document.Paths {
		for method := range methods {
			t.Errorf("%s %s is described and not in the contract", method, path)
		}
	}
}
