package schemas

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxBody is the largest event that is read, in bytes. An event has some hundred
// bytes, and the largest that Encode can write, every text at its longest, about
// 36 KiB; the rest is room for extension attributes. What is larger is refused
// before it is looked at.
const MaxBody = 64 << 10

// specVersion and contentType are what every event of ours says of itself.
const (
	specVersion = "1.0"
	contentType = "application/json"
)

// Data is any of the payloads that an event can carry.
type Data interface {
	ExecutionRequested | ExecutionProgressed | ExecutionCompleted | SubscriptionRenewed |
		DecisionMade | PlanInvalidated | UsageThresholdReached
}

// payload is what each of them knows of itself.
type payload interface {
	described
	eventType() string
	workspace() string
}

// NewEvent is an event of data's type. The id and the source together make its
// identity; at is when it happened.
func NewEvent[T Data](source, id string, at time.Time, data T) Event[T] {
	return Event[T]{
		SpecVersion: specVersion, ID: id, Source: source, Type: payloadOf(&data).eventType(),
		Time: at.UTC().Round(0), DataContentType: contentType, Data: data,
	}
}

// Decode reads an event that came over subject. It accepts what the JSON Schema
// of T's type accepts, and in addition demands a body of at most MaxBody bytes
// of UTF-8, no field twice in one object, and a subject whose last token is
// data.workspace_id, so that NATS permissions on subjects isolate workspaces.
//
// Names are compared exactly; a null is an absent field; 3.0 and 3 are the same
// integer; fields that the schema does not know are ignored; times come back in UTC.
// The error is a *DecodeError, whose reason no retry will mend.
func Decode[T Data](subject string, body []byte) (Event[T], error) {
	var e Event[T]
	if fault := read(&e, subject, body); fault != nil {
		return Event[T]{}, fault
	}
	return e, nil
}

func read[T Data](e *Event[T], subject string, body []byte) *DecodeError {
	if len(body) > MaxBody {
		return &DecodeError{Reason: ReasonTooLarge, Detail: fmt.Sprintf("the body has %d bytes, at most %d are read", len(body), MaxBody)}
	}
	if !utf8.Valid(body) {
		return malformed("the body is not UTF-8")
	}
	if !json.Valid(body) {
		return malformed("the body is not JSON: %v", json.Unmarshal(body, new(json.RawMessage)))
	}
	body = body[skipSpace(body, 0):]
	if body[0] != '{' {
		return malformed("the body is not a JSON object")
	}
	f := fields{reading: true, members: members(body)}
	describe(&f, e)
	if f.fault != nil {
		return f.fault
	}
	ws := payloadOf(&e.Data).workspace()
	if token := subject[strings.LastIndexByte(subject, '.')+1:]; token != ws {
		return &DecodeError{
			Reason: ReasonSubjectMismatch, Field: "data.workspace_id",
			Detail: fmt.Sprintf("is %q, but the subject is %q", ws, subject),
		}
	}
	return nil
}

// Encode writes an event as structured JSON, after the same checks that Decode
// makes, so that what it returns can be read. The specversion, type and
// datacontenttype are filled in. The error is a *DecodeError.
func Encode[T Data](e Event[T]) ([]byte, error) {
	e.SpecVersion, e.Type, e.DataContentType = specVersion, payloadOf(&e.Data).eventType(), contentType
	var f fields
	describe(&f, &e)
	if f.fault != nil {
		return nil, f.fault
	}
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Type, err)
	}
	if len(body) > MaxBody {
		return nil, &DecodeError{Reason: ReasonTooLarge, Detail: fmt.Sprintf("the body has %d bytes, at most %d are read", len(body), MaxBody)}
	}
	return body, nil
}

func payloadOf[T Data](data *T) payload {
	p, ok := any(data).(payload)
	if !ok {
		panic(fmt.Sprintf("schemas: %T is Data but describes no fields", data))
	}
	return p
}

// describe goes through the fields of an event. The type comes first: of an
// event that is not ours, nothing else can be said.
func describe[T Data](f *fields, e *Event[T]) {
	data := payloadOf(&e.Data)
	f.eventType(&e.Type, data.eventType())
	f.specVersion(&e.SpecVersion)
	f.label("id", &e.ID, required)
	f.label("source", &e.Source, required)
	f.note("subject", &e.Subject, optional)
	f.instant("time", &e.Time, optional)
	f.note("datacontenttype", &e.DataContentType, optional)
	f.object("data", required, data)
}

// eventType tells another version of the wanted type from another type.
func (f *fields) eventType(v *string, want string) {
	if !f.reading {
		return
	}
	text, found := f.findText("type", required)
	if !found {
		return
	}
	if string(text) == want {
		*v = want
		return
	}
	base, version := want[:strings.LastIndexByte(want, '.')+2], want[strings.LastIndexByte(want, '.')+2:]
	if other, ok := strings.CutPrefix(string(text), base); ok && other != "" && strings.Trim(other, "0123456789") == "" {
		f.fail(&DecodeError{
			Reason: ReasonUnknownVersion, Field: "type",
			Detail: fmt.Sprintf("is %.64q, only version %s is known", text, version),
		})
		return
	}
	f.fail(&DecodeError{Reason: ReasonUnknownType, Field: "type", Detail: fmt.Sprintf("is %.64q, must be %q", text, want)})
}

func (f *fields) specVersion(v *string) {
	if !f.reading {
		return
	}
	text, found := f.findText("specversion", required)
	if !found {
		return
	}
	if string(text) != specVersion {
		f.fail(&DecodeError{
			Reason: ReasonUnknownVersion, Field: "specversion",
			Detail: fmt.Sprintf("is %.64q, must be %q", text, specVersion),
		})
		return
	}
	*v = specVersion
}
