package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/schemas"
)

func TestDeadLettersAreListedAsTheContractSays(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	if text := m.must("deadletters", "list", "-o", "json"); text != "[]\n" {
		t.Errorf("without any the list is %q", text)
	}
	if text := m.must("deadletters", "list"); text != "no dead letters\n" {
		t.Errorf("without any the table is %q", text)
	}
	m.put(note{room: "executions", kind: "requested", reason: "syntax: it is <none>", subject: "headroom.executions.requested.acme", sequence: 7, first: givenUpAt.Add(-1500e6), body: "x"})
	if _, err := m.js.Publish(t.Context(), "headroom.deadletters.elsewhere.odd", []byte("by hand")); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	m.mustJSON(&got, "deadletters", "list")
	want := []map[string]any{
		{"sequence": 2.0, "room": "elsewhere", "kind": "odd", "reason": "", "subject": "", "deliveries": 0.0, "first_at": nil, "last_at": nil},
		{
			"sequence": 1.0, "room": "executions", "kind": "requested", "reason": "syntax: it is <none>", "subject": "headroom.executions.requested.acme",
			"deliveries": 3.0, "first_at": "2026-11-30T11:59:58.5Z", "last_at": "2026-11-30T12:00:00Z",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
	if row := rowWith(t, m.must("deadletters", "list"), "requested"); row != "1    executions  requested  2026-11-30T12:00:00Z  3           headroom.executions.requested.acme  syntax: it is <none>" {
		t.Errorf("the row is %q", row)
	}
}

func TestTheNewestDeadLettersAreFoundWhereverTheyAre(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	const n, rare = 3000, 400 // one in 400 is a completion
	m.putMany(n, func(i int) string {
		if i%rare == 0 {
			return "completed"
		}
		return "requested"
	})
	box := m.stream(schemas.StreamDeadLetters)
	for sequence := uint64(n - 40); sequence < n-10; sequence++ { // a hole among the newest
		if err := box.DeleteMsg(t.Context(), sequence); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		flags []string
		want  []uint64 // the first ones
		n     int
	}{
		"a hundred unless told":  {nil, []uint64{3000, 2999}, 100},
		"over the hole":          {[]string{"--limit", "13"}, []uint64{3000, 2999, 2998, 2997, 2996, 2995, 2994, 2993, 2992, 2991, 2990, 2959, 2958}, 13},
		"all":                    {[]string{"--limit", "9999"}, []uint64{3000}, n - 30},
		"a rare kind":            {[]string{"--kind", "completed"}, []uint64{2801, 2401, 2001, 1601, 1201, 801, 401, 1}, 8},
		"some of a rare kind":    {[]string{"--kind", "completed", "--limit", "3"}, []uint64{2801, 2401, 2001}, 3},
		"a room and a kind":      {[]string{"--room", "executions", "--kind", "completed", "--limit", "1"}, []uint64{2801}, 1},
		"a room that wrote none": {[]string{"--room", "subscriptions"}, nil, 0},
	} {
		got := m.letters(test.flags...)
		if len(got) != test.n {
			t.Errorf("%s: %d letters, want %d", name, len(got), test.n)
		}
		for i, want := range test.want[:min(len(test.want), len(got))] {
			if got[i].Sequence != want {
				t.Errorf("%s: letter %d has sequence %d, want %d", name, i, got[i].Sequence, want)
			}
		}
		for i := 1; i < len(got); i++ {
			if got[i].Sequence >= got[i-1].Sequence {
				t.Fatalf("%s: sequence %d stands behind %d", name, got[i].Sequence, got[i-1].Sequence)
			}
		}
	}
}

func TestADeadLetterIsShownSafely(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	bell := m.put(note{room: "executions", kind: "requested", reason: "bad \u202e\u009b31m", subject: "headroom.executions.requested.acme", body: "a\x1b[2Jb\xff\tc\r\n\U0001f600\U000e0001"})
	text := m.must("deadletters", "show", number(int64(bell)))
	for _, want := range []string{`bad \u202e\u009b31m`, `a\u001b[2Jb\xff` + "\tc" + `\u000d` + "\n\U0001f600" + `\U000e0001`, "no longer in HEADROOM_EXECUTIONS, where it was 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("show prints no %q:\n%s", want, text)
		}
	}
	if row := rowWith(t, m.must("deadletters", "list"), "acme"); !strings.Contains(row, `bad \u202e\u009b31m`) {
		t.Errorf("the row is %q", row)
	}
	var view map[string]any
	m.mustJSON(&view, "deadletters", "show", number(int64(bell)))
	if view["body"] != nil || view["body_base64"] == nil {
		t.Errorf("a body that is no UTF-8 is %v", view)
	}
	good := m.put(note{room: "decisions", kind: "made", reason: "x", subject: "headroom.decisions.acme", body: "  {\"a\":{\"b\":[1]}} "})
	text = m.must("deadletters", "show", number(int64(good)))
	if !strings.HasSuffix(text, "\n{\n  \"a\": {\n    \"b\": [\n      1\n    ]\n  }\n}\n") {
		t.Errorf("a body of JSON is shown as\n%s", text)
	}
	if _, _, err := m.run("deadletters", "show", "99"); exitCode(err) != exitFailed || !strings.Contains(err.Error(), "no dead letter 99") {
		t.Errorf("showing what is not there: %v", err)
	}
}

func TestAnEventThatServeGivesUpIsListedShownAndCounted(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.must("plans", "apply", demoCatalog)
	s := m.serve()
	s.awaitStatus(200)
	if families := s.scrape(); families["headroom_deadletters"] == nil || sum(families["headroom_deadletters"]) != 0 || sum(families["headroom_deadletters_oldest_seconds"]) != 0 {
		t.Errorf("without letters the metrics are %v", families["headroom_deadletters"])
	}
	if _, err := m.js.Publish(t.Context(), "headroom.executions.requested.acme", []byte(`{"specversion":"2.0"}`)); err != nil {
		t.Fatal(err)
	}
	letter := m.awaitLetter(1)
	if letter.Room != "executions" || letter.Kind != "requested" || letter.Deliveries != 1 || letter.FirstAt == nil || letter.LastAt == nil || letter.Reason == "" {
		t.Errorf("the letter is %+v", letter)
	}
	text := m.must("deadletters", "show", "1")
	if !hasLine(text, "original", "HEADROOM_EXECUTIONS 1") || !hasLine(text, "reason", letter.Reason) || !strings.Contains(text, "{\n  \"specversion\": \"2.0\"\n}\n") {
		t.Errorf("show prints\n%s", text)
	}
	var view letterView
	if err := json.Unmarshal([]byte(m.must("deadletters", "show", "1", "-o", "json")), &view); err != nil || view.Body == nil || *view.Body != `{"specversion":"2.0"}` {
		t.Errorf("as JSON it is %+v, %v", view, err)
	}
	families := s.scrape()
	if age := sum(families["headroom_deadletters_oldest_seconds"]); sum(families["headroom_deadletters"]) != 1 || age <= 0 || age > 600 {
		t.Errorf("with one letter the metrics are %v and %v", families["headroom_deadletters"], age)
	}
	s.awaitStatus(200)
}
