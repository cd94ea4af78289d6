package schemas

import (
	"bytes"
	"embed"
	"fmt"
	"strings"
)

//go:embed documents/*.schema.json
var jsonSchemas embed.FS

//go:embed documents/asyncapi.yaml
var asyncAPI []byte

// EventTypes lists the type of every event, in the order of the contract.
var EventTypes = []string{
	TypeExecutionRequested, TypeExecutionProgressed, TypeExecutionCompleted, TypeSubscriptionRenewed,
	TypeDecisionMade, TypePlanInvalidated, TypeUsageThresholdReached,
}

// JSONSchema is the JSON Schema (draft 2020-12) of a whole event of the type,
// complete in itself. An unknown type is an error.
func JSONSchema(eventType string) ([]byte, error) {
	name := strings.TrimPrefix(eventType, DefaultPrefix+".") + ".schema.json"
	body, err := jsonSchemas.ReadFile("documents/" + name)
	if err != nil {
		return nil, fmt.Errorf("read schema of event type %q: %w", eventType, err)
	}
	return body, nil
}

// AsyncAPI is the AsyncAPI 3 document, in YAML, of every subject and message.
// Its references are to the schemas beside it.
func AsyncAPI() []byte { return bytes.Clone(asyncAPI) }
