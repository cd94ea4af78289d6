package consumers_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// bad is a message that can never be handled, and the class of its fault.
type bad struct {
	subject string
	body    string
	reason  schemas.Reason
}

func event(kind, data string) string {
	return `{"specversion":"1.0","type":"headroom.execution.` + kind + `.v1","id":"e","source":"test","data":` + data + `}`
}

const asked = "headroom.executions.requested.acme"

func malformed() map[string]bad {
	good := `{"workspace_id":"acme","execution_id":"x"}`
	return map[string]bad{
		"nothing":                        {asked, ``, schemas.ReasonSyntax},
		"blanks":                         {asked, `   `, schemas.ReasonSyntax},
		"no JSON":                        {asked, `please start x`, schemas.ReasonSyntax},
		"cut short":                      {asked, event("requested", good)[:80], schemas.ReasonSyntax},
		"something behind the end":       {asked, event("requested", good) + `{}`, schemas.ReasonSyntax},
		"a list":                         {asked, `[` + event("requested", good) + `]`, schemas.ReasonSyntax},
		"no UTF-8":                       {asked, "\xff\xfe{}", schemas.ReasonSyntax},
		"a field twice":                  {asked, event("requested", `{"workspace_id":"acme","workspace_id":"acme","execution_id":"x"}`), schemas.ReasonSyntax},
		"no type":                        {asked, strings.Replace(event("requested", good), `"type"`, `"typ"`, 1), schemas.ReasonMissingField},
		"another type":                   {asked, event("completed", good), schemas.ReasonUnknownType},
		"an unknown version":             {asked, strings.Replace(event("requested", good), ".v1", ".v2", 1), schemas.ReasonUnknownVersion},
		"no specversion":                 {asked, strings.Replace(event("requested", good), `"specversion":"1.0",`, ``, 1), schemas.ReasonMissingField},
		"an unknown specversion":         {asked, strings.Replace(event("requested", good), `"1.0"`, `"2.0"`, 1), schemas.ReasonUnknownVersion},
		"no id":                          {asked, strings.Replace(event("requested", good), `"id":"e",`, ``, 1), schemas.ReasonMissingField},
		"an id that is a number":         {asked, strings.Replace(event("requested", good), `"id":"e"`, `"id":7`, 1), schemas.ReasonInvalidField},
		"no source":                      {asked, strings.Replace(event("requested", good), `"source":"test",`, ``, 1), schemas.ReasonMissingField},
		"no data":                        {asked, strings.Replace(event("requested", good), `"data"`, `"date"`, 1), schemas.ReasonMissingField},
		"data that is a text":            {asked, event("requested", `"acme"`), schemas.ReasonInvalidField},
		"no workspace":                   {asked, event("requested", `{"execution_id":"x"}`), schemas.ReasonMissingField},
		"no execution":                   {asked, event("requested", `{"workspace_id":"acme"}`), schemas.ReasonMissingField},
		"an execution that is no id":     {asked, event("requested", `{"workspace_id":"acme","execution_id":"x.y *"}`), schemas.ReasonInvalidField},
		"a negative payload":             {asked, event("requested", `{"workspace_id":"acme","execution_id":"x","payload_bytes":-1}`), schemas.ReasonInvalidField},
		"a payload that is no number":    {asked, event("requested", `{"workspace_id":"acme","execution_id":"x","payload_bytes":"big"}`), schemas.ReasonInvalidField},
		"a deadline that is no instant":  {asked, event("requested", `{"workspace_id":"acme","execution_id":"x","deadline":"soon"}`), schemas.ReasonInvalidField},
		"a subject of another workspace": {"headroom.executions.requested.evil", event("requested", good), schemas.ReasonSubjectMismatch},
		"a megabyte of nonsense":         {asked, strings.Repeat("\x00nonsense", (1<<20-1024)/9), schemas.ReasonTooLarge},
		"a progress without execution":   {"headroom.executions.progressed.acme", event("progressed", `{"workspace_id":"acme"}`), schemas.ReasonMissingField},
		"a completion without outcome":   {"headroom.executions.completed.acme", event("completed", good), schemas.ReasonMissingField},
		"an unknown outcome":             {"headroom.executions.completed.acme", event("completed", `{"workspace_id":"acme","execution_id":"x","outcome":"exploded"}`), schemas.ReasonInvalidField},
	}
}

func TestWhatIsMalformedGoesToTheDeadLettersAndTheStreamFlowsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(&judge{})
	messages := malformed()
	bySequence := make(map[string]string)
	var sequence int
	for name, m := range messages {
		w.publish(m.subject, []byte(m.body), nats.Header{"traceparent": {"00-" + name}, "Nats-Msg-Id": {name}})
		sequence++
		bySequence[strconv.Itoa(sequence)] = name
		w.request("acme", fmt.Sprintf("good-%d", sequence))
		sequence++
	}
	letters := w.await(schemas.StreamDeadLetters, len(messages))
	w.decisions(len(messages))
	for _, kind := range []string{"requested", "progressed", "completed"} {
		w.settled(kind)
	}
	for _, letter := range letters {
		name := bySequence[letter.Header.Get("Headroom-Sequence")]
		sent, known := messages[name]
		if !known {
			t.Errorf("a dead letter for sequence %q, which was no malformed message", letter.Header.Get("Headroom-Sequence"))
			continue
		}
		delete(messages, name)
		checkLetter(t, name, sent, letter)
	}
	for name := range messages {
		t.Errorf("%s: no dead letter", name)
	}
	if n := w.count(schemas.StreamDeadLetters); n != len(bySequence) {
		t.Errorf("%d dead letters, want %d", n, len(bySequence))
	}
}

func checkLetter(t *testing.T, name string, sent bad, letter *jetstream.RawStreamMsg) {
	t.Helper()
	kind := strings.Split(sent.subject, ".")[2]
	if want := "headroom.deadletters.executions." + kind; letter.Subject != want {
		t.Errorf("%s: dead letter on %s, want %s", name, letter.Subject, want)
	}
	if reason := letter.Header.Get("Headroom-Reason"); !strings.HasPrefix(reason, string(sent.reason)+": ") {
		t.Errorf("%s: reason is %q, want one that begins with %q", name, reason, sent.reason)
	}
	for header, want := range map[string]string{
		"Headroom-Subject": sent.subject, "Headroom-Deliveries": "1", "traceparent": "00-" + name,
	} {
		if got := letter.Header.Get(header); got != want {
			t.Errorf("%s: header %s is %q, want %q", name, header, got, want)
		}
	}
	for _, header := range []string{"Headroom-First", "Headroom-Last"} {
		if at, err := time.Parse(time.RFC3339Nano, letter.Header.Get(header)); err != nil || time.Since(at) > time.Hour {
			t.Errorf("%s: header %s is %q, want an instant just now", name, header, letter.Header.Get(header))
		}
	}
	if !bytes.Equal(letter.Data, []byte(sent.body)) && letter.Header.Get("Headroom-Truncated") == "" {
		t.Errorf("%s: the body was changed", name)
	}
}

func TestADeadLetterTooLargeToCopyIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(&judge{})
	body := bytes.Repeat([]byte("nonsense"), int(w.nats.MaxPayload())/8-8)
	w.publish(asked, body)
	letter := w.await(schemas.StreamDeadLetters, 1)[0]
	if got := letter.Header.Get("Headroom-Truncated"); got != strconv.Itoa(len(body)) {
		t.Errorf("Headroom-Truncated is %q, want the full length %d", got, len(body))
	}
	if len(letter.Data) >= len(body) || !bytes.HasPrefix(body, letter.Data) || len(letter.Data) < len(body)/2 {
		t.Errorf("the letter holds %d bytes of %d, want most of its beginning", len(letter.Data), len(body))
	}
	w.settled("requested")
}
