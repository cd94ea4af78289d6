package schemas_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/schemas"
)

const subject = "headroom.executions.requested.ws_acme"

// event is a request whose data has the given members besides the two ids.
func event(data string) string {
	return `{"specversion":"1.0","id":"e1","source":"//engine","type":"headroom.execution.requested.v1",` +
		`"data":{"workspace_id":"ws_acme","execution_id":"exec-1"` + data + `}}`
}

func TestDecodeNamesTheFieldAndTheFault(t *testing.T) {
	t.Parallel()
	good := event("")
	swap := func(old, with string) string { return strings.Replace(good, old, with, 1) }
	tests := map[string]struct {
		body   string
		reason schemas.Reason
		field  string
		says   string
	}{
		"empty":                     {"", schemas.ReasonSyntax, "", "not JSON"},
		"cut off":                   {good[:len(good)-1], schemas.ReasonSyntax, "", "unexpected end"},
		"something behind it":       {good + "{}", schemas.ReasonSyntax, "", "after top-level value"},
		"not an object":             {"[1]", schemas.ReasonSyntax, "", "not a JSON object"},
		"not UTF-8":                 {swap("e1", "e\xff"), schemas.ReasonSyntax, "", "UTF-8"},
		"a field twice":             {swap(`"id":"e1"`, `"id":"e1","id":"e2"`), schemas.ReasonSyntax, "", "id stands there twice"},
		"a nested field twice":      {event(`,"execution_id":"exec-2"`), schemas.ReasonSyntax, "", "data.execution_id stands there twice"},
		"a field twice, once null":  {event(`,"execution_id":null`), schemas.ReasonSyntax, "", "data.execution_id stands there twice"},
		"a name spelled by escapes": {event(`,"execution_i\u0064":"exec-2"`), schemas.ReasonSyntax, "", "data.execution_id stands there twice"},
		"nothing in it":             {"{}", schemas.ReasonMissingField, "type", "is missing"},
		"no id":                     {swap(`"id":"e1",`, ""), schemas.ReasonMissingField, "id", "is missing"},
		"an empty id":               {swap("e1", ""), schemas.ReasonInvalidField, "id", "1 to 256 characters"},
		"a line break in the id":    {swap("e1", `e\r\nX: y`), schemas.ReasonInvalidField, "id", "control"},
		"no source":                 {swap(`"source":"//engine",`, ""), schemas.ReasonMissingField, "source", "is missing"},
		"an old CloudEvents":        {swap(`"1.0"`, `"0.3"`), schemas.ReasonUnknownVersion, "specversion", `"0.3"`},
		"a later version":           {swap("v1", "v2"), schemas.ReasonUnknownVersion, "type", "only version 1 is known"},
		"another type of ours":      {swap("requested.v1", "completed.v1"), schemas.ReasonUnknownType, "type", "must be"},
		"a type without a version":  {swap(".v1", ""), schemas.ReasonUnknownType, "type", "must be"},
		"a type that is a number":   {swap(`"headroom.execution.requested.v1"`, "1"), schemas.ReasonInvalidField, "type", "string"},
		"no data":                   {swap(`"data"`, `"Data"`), schemas.ReasonMissingField, "data", "is missing"},
		"data is text":              {`{"specversion":"1.0","id":"e1","source":"//engine","type":"headroom.execution.requested.v1","data":"x"}`, schemas.ReasonInvalidField, "data", "object"},
		"a name in capitals":        {swap("workspace_id", "WORKSPACE_ID"), schemas.ReasonMissingField, "data.workspace_id", "is missing"},
		"a null for a must":         {swap(`"exec-1"`, "null"), schemas.ReasonMissingField, "data.execution_id", "is missing"},
		"a dot in an id":            {swap("exec-1", "exec.1"), schemas.ReasonInvalidField, "data.execution_id", `"exec.1"`},
		"an id that is too long":    {swap("exec-1", strings.Repeat("x", 129)), schemas.ReasonInvalidField, "data.execution_id", "1 to 128"},
		"a negative size":           {event(`,"payload_bytes":-1`), schemas.ReasonInvalidField, "data.payload_bytes", "-1"},
		"half a byte":               {event(`,"payload_bytes":0.5`), schemas.ReasonInvalidField, "data.payload_bytes", "whole number"},
		"a size beyond a double":    {event(`,"payload_bytes":9007199254740992`), schemas.ReasonInvalidField, "data.payload_bytes", "must be 0 to 9007199254740991"},
		"a size beyond 64 bits":     {event(`,"payload_bytes":1e19`), schemas.ReasonInvalidField, "data.payload_bytes", "64 bits"},
		"a size as text":            {event(`,"payload_bytes":"1"`), schemas.ReasonInvalidField, "data.payload_bytes", "number"},
		"a day that is none":        {event(`,"deadline":"2026-02-30T00:00:00Z"`), schemas.ReasonInvalidField, "data.deadline", "RFC 3339"},
		"a time without a zone":     {event(`,"deadline":"2026-11-30T10:00:00"`), schemas.ReasonInvalidField, "data.deadline", "RFC 3339"},
		"another workspace":         {swap("ws_acme", "ws_other"), schemas.ReasonSubjectMismatch, "data.workspace_id", `"headroom.executions.requested.ws_acme"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := schemas.Decode[schemas.ExecutionRequested](subject, []byte(test.body))
			var fault *schemas.DecodeError
			if !errors.As(err, &fault) {
				t.Fatalf("error is %v, want a *DecodeError", err)
			}
			if fault.Reason != test.reason || fault.Field != test.field {
				t.Errorf("refused as %s of %q (%v), want %s of %q", fault.Reason, fault.Field, fault, test.reason, test.field)
			}
			if !strings.Contains(fault.Error(), test.says) {
				t.Errorf("%q does not say %q", fault.Error(), test.says)
			}
		})
	}
}

func TestDecodeTakesAnIntegerHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]int64{
		"7": 7, "7.0": 7, "7e0": 7, "70E-1": 7, "0.7e1": 7, "0.0000007e+7": 7, "-0": 0, "0.0": 0, "0e99999999999999999999": 0, "-0e-5": 0,
		"9007199254740991": schemas.MaxCount, "9007199254740991.000": schemas.MaxCount, "900719925474099100e-2": schemas.MaxCount,
		"0.5": -1, "7.1": -1, "1e-1": -1, "-1": -1, "1e99999999999999999999": -1, "1e-99999999999999999999": -1, "1e2147483647": -1, "9223372036854775808": -1, "-1e400": -1,
	} {
		got, err := schemas.Decode[schemas.ExecutionRequested](subject, []byte(event(`,"payload_bytes":`+written)))
		switch {
		case want < 0 && err == nil:
			t.Errorf("%s is accepted as %d", written, *got.Data.PayloadBytes)
		case want >= 0 && (err != nil || *got.Data.PayloadBytes != want):
			t.Errorf("%s: error %v, want %d", written, err, want)
		}
	}
}

func TestDecodeRefusesALargeBodyUnread(t *testing.T) {
	t.Parallel()
	good := event("")
	padded := good + strings.Repeat(" ", schemas.MaxBody-len(good))
	if _, err := schemas.Decode[schemas.ExecutionRequested](subject, []byte(padded)); err != nil {
		t.Errorf("a body of exactly MaxBody bytes is refused: %v", err)
	}
	for name, body := range map[string][]byte{
		"one byte more":         []byte(padded + " "),
		"a megabyte of nothing": make([]byte, 1<<20),
	} {
		_, err := schemas.Decode[schemas.ExecutionRequested](subject, body)
		var fault *schemas.DecodeError
		if !errors.As(err, &fault) || fault.Reason != schemas.ReasonTooLarge {
			t.Errorf("%s: error is %v, want %s", name, err, schemas.ReasonTooLarge)
		}
	}
}

func TestDecodeComparesTheLastTokenOfTheSubject(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]bool{
		"headroom.executions.requested.ws_acme": true,
		"acme.eu.executions.requested.ws_acme":  true,
		"ws_acme":                               true,
		"":                                      false,
		"headroom.executions.requested.":        false,
		"headroom.executions.requested.WS_ACME": false,
		"headroom.ws_acme.requested":            false,
		"headroom.executions.requested.x.acme":  false,
	} {
		_, err := schemas.Decode[schemas.ExecutionRequested](subject, []byte(event("")))
		if got := err == nil; got != want {
			t.Errorf("subject %q: accepted is %t, want %t (%v)", subject, got, want, err)
		}
	}
}

func TestDecodeReadsWhatItAccepts(t *testing.T) {
	t.Parallel()
	body := "\n" + `{"data" : { "execution_id":"exec-\u0031" ,"payload_bytes":2.5e3,"deadline":"2026-11-30T11:00:00.25+01:00",
		"workspace_id":"ws_acme", "other":{"workspace_id":[1,"}"]}}, "type":"headroom.execution.requested.v1", "subject":null,
		"source":"//engine","id":"é \"1\"","specversion":"1.0","traceparent":"00-aa-bb-01", "Data":1 }` + "\n"
	got, err := schemas.Decode[schemas.ExecutionRequested](subject, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	want := schemas.Event[schemas.ExecutionRequested]{
		SpecVersion: "1.0", ID: `é "1"`, Source: "//engine", Type: schemas.TypeExecutionRequested,
		Data: schemas.ExecutionRequested{
			WorkspaceID: "ws_acme", ExecutionID: "exec-1", PayloadBytes: new(int64(2500)),
			Deadline: new(time.Date(2026, time.November, 30, 10, 0, 0, 250_000_000, time.UTC)),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
	if zone := got.Data.Deadline.Location(); zone != time.UTC {
		t.Errorf("deadline is in %s, want UTC", zone)
	}
}

// What is decoded must not change when its buffer is used for the next message,
// and must not keep a whole body alive.
func TestDecodeKeepsNothingOfTheBody(t *testing.T) {
	t.Parallel()
	body := mustEncode(codecs()[4], 1)
	got, err := schemas.Decode[schemas.DecisionMade]("headroom.decisions.ws_acme", body)
	if err != nil {
		t.Fatal(err)
	}
	for i := range body {
		body[i] = 'x'
	}
	if diff := cmp.Diff(denied(), got.Data, sameLimit); diff != "" {
		t.Errorf("the decoded event changed with its buffer (-want +got):\n%s", diff)
	}
}

func TestADecisionWithoutAPlanIsA9008(t *testing.T) {
	t.Parallel()
	bare := schemas.NewEvent(sampleSource, sampleID, at(10, 0), unavailable())
	if _, err := schemas.Encode(bare); err != nil {
		t.Errorf("a 9008 without a plan is refused: %v", err)
	}
	for field, spoil := range map[string]func(*schemas.DecisionMade){
		"data.plan_key":     func(d *schemas.DecisionMade) { d.PlanKey = "" },
		"data.period_start": func(d *schemas.DecisionMade) { d.PeriodStart = time.Time{} },
		"data.period_end":   func(d *schemas.DecisionMade) { d.PeriodEnd = time.Time{} },
		"data.plan_as_of":   func(d *schemas.DecisionMade) { d.PlanAsOf = time.Time{} },
		"data.code":         func(d *schemas.DecisionMade) { d.Allowed = true },
		"data.exhausted":    func(d *schemas.DecisionMade) { d.Exhausted = []string{"max_nonsense"} },
	} {
		d := denied()
		spoil(&d)
		_, err := schemas.Encode(schemas.NewEvent(sampleSource, sampleID, at(10, 0), d))
		var fault *schemas.DecodeError
		if !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("a 9001 with a wrong %s: error is %v", field, err)
		}
	}
	shadow := denied()
	shadow.Allowed, shadow.Shadow = true, true
	if _, err := schemas.Encode(schemas.NewEvent(sampleSource, sampleID, at(10, 0), shadow)); err != nil {
		t.Errorf("a shadow decision that allows in spite of its code is refused: %v", err)
	}
}
