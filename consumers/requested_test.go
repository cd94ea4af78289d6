package consumers_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestARequestIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := &judge{}
	r := w.start(j)
	w.request("acme", "x", nats.Header{"traceparent": {"00-trace"}})
	got := w.decisions(1)
	w.request("acme", "x") // the same event again
	w.settled("requested")

	m := w.stored(schemas.StreamDecisions)
	if len(m) != 1 || m[0].Subject != "headroom.decisions.acme" {
		t.Fatalf("%d decisions stored, the first on %s, want one for acme", len(m), m[0].Subject)
	}
	for name, want := range map[string]string{"Nats-Msg-Id": got[0].DecisionID, "traceparent": "00-trace"} {
		if have := m[0].Header.Get(name); have != want {
			t.Errorf("header %s is %q, want %q", name, have, want)
		}
	}
	event, err := schemas.Decode[schemas.DecisionMade](m[0].Subject, m[0].Data)
	if err != nil || event.ID != got[0].DecisionID {
		t.Errorf("event id is %q, %v, want the decision's id %q", event.ID, err, got[0].DecisionID)
	}
	if s := w.counts(r); s.Acknowledged() != 2 || s.Allowed() != 1 || s.Repeated() != 1 {
		t.Errorf("acknowledged %d, allowed %d, repeated %d, want 2, 1, 1", s.Acknowledged(), s.Allowed(), s.Repeated())
	}
}

func TestARequesterIsAnsweredInItsInbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(&judge{})
	for i, test := range []struct {
		inbox string
		heard bool
	}{
		{"_INBOX.abc", true},
		{"_INBOX.abc.def-1", true},
		{"_INBOX.", false},
		{"_INBOX", false},
		{"_INBOX.a..b", false},
		{"_INBOX.*", false},
		{"_INBOX.a.>", false},
		{"_INBOX.a b", false},
		{"_inbox.a", false},
		{"headroom.executions.completed.acme", false},
		{"$SYS.REQ.SERVER.PING", false},
	} {
		t.Run(test.inbox, func(t *testing.T) {
			execution := fmt.Sprintf("x%d", i)
			all, err := w.nats.SubscribeSync(">")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = all.Unsubscribe() }()
			w.request("acme", execution, nats.Header{"Headroom-Reply": {test.inbox}})
			w.settled("requested")
			heard := false
			for {
				m, err := all.NextMsg(50 * time.Millisecond)
				if err != nil {
					break
				}
				if m.Subject != test.inbox {
					continue
				}
				event, err := schemas.Decode[schemas.DecisionMade](w.topology.Decision("acme"), m.Data)
				heard = err == nil && event.Data.ExecutionID == execution
			}
			if heard != test.heard {
				t.Errorf("answer in %q: %t, want %t", test.inbox, heard, test.heard)
			}
		})
	}
}

func TestARequestWaitsWhileNothingCanBeDecided(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	away := 3
	j := &judge{}
	j.admit = func(r enforcement.Request) enforcement.Result {
		if away--; away >= 0 {
			return enforcement.Result{Err: fmt.Errorf("redis: %w", enforcement.ErrUnavailable)}
		}
		return enforcement.Result{Decision: allowed(r)}
	}
	r := w.start(j)
	w.request("acme", "x")
	if got := w.decisions(1); !got[0].Allowed {
		t.Errorf("decision is %+v, want allowed", got[0])
	}
	w.settled("requested")
	if s := w.counts(r); s.Deferred() < 3 || s.Acknowledged() != 1 || s.DeadLettered() != 0 {
		t.Errorf("deferred %d, acknowledged %d, dead %d, want at least 3, 1, 0", s.Deferred(), s.Acknowledged(), s.DeadLettered())
	}
}

func TestAPlanThatCannotBeReadKeepsOnlyItsWorkspaceWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := &judge{admit: func(r enforcement.Request) enforcement.Result {
		if r.WorkspaceID == "unknown" {
			return enforcement.Result{Err: errors.New("look up plan: the database is away")}
		}
		return enforcement.Result{Decision: allowed(r)}
	}}
	// By a clock that stands still no pause ever ends.
	now := time.Now()
	w.start(j, func(o *consumers.Options) { o.Now = func() time.Time { return now } })
	w.request("unknown", "x")
	w.eventually("the unknown one is asked for twice", func() bool { return len(j.told(&j.asked)) >= 2 })
	w.request("acme", "y")
	if d := w.decisions(1)[0]; d.WorkspaceID != "acme" || !d.Allowed {
		t.Errorf("decided %+v", d)
	}
}

func TestARequestIsRefusedWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	soon := func() *time.Time { at := time.Now().Add(200 * time.Millisecond); return &at }
	for name, test := range map[string]struct {
		budget   time.Duration
		deadline *time.Time
		fault    error
		message  string
	}{
		"the budget is used up":         {200 * time.Millisecond, nil, enforcement.ErrUnavailable, "Redis or the plan could not be reached in time"},
		"its own deadline has passed":   {time.Hour, soon(), enforcement.ErrUnavailable, "Redis or the plan could not be reached in time"},
		"its plan stays out of reach":   {200 * time.Millisecond, nil, errors.New("database away"), "Redis or the plan could not be reached in time"},
		"no catalog was applied":        {200 * time.Millisecond, nil, subscriptions.ErrNoDefaultPlan, subscriptions.ErrNoDefaultPlan.Error()},
		"its workspace is not entitled": {time.Hour, nil, subscriptions.ErrNotEntitled, subscriptions.ErrNotEntitled.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			away := 2
			j := &judge{
				admit: func(enforcement.Request) enforcement.Result {
					return enforcement.Result{Err: fmt.Errorf("ask: %w", test.fault)}
				},
				withdraw: func(enforcement.Request) error {
					if away--; away >= 0 {
						return enforcement.ErrUnavailable
					}
					return nil
				},
			}
			r := w.start(j, func(o *consumers.Options) { o.UnavailableBudget = test.budget })
			inbox, err := w.nats.SubscribeSync("_INBOX.me")
			if err != nil {
				t.Fatal(err)
			}
			w.publish(w.topology.Requested("acme"), requestBody(w, "acme", "x", test.deadline), nats.Header{"Headroom-Reply": {"_INBOX.me"}})
			got := w.decisions(1)
			if got[0].Code != 9008 || got[0].Allowed || got[0].Message != test.message {
				t.Errorf("decision is %d %q, want 9008 %q", got[0].Code, got[0].Message, test.message)
			}
			if _, err := inbox.NextMsg(patience); err != nil {
				t.Errorf("the requester was not answered: %v", err)
			}
			w.settled("requested")
			if diff := cmp.Diff([]string{"x", "x", "x"}, j.told(&j.withdrawn)); diff != "" {
				t.Errorf("withdrawals (-want +got):\n%s", diff)
			}
			if n := w.count(schemas.StreamDecisions); n != 1 {
				t.Errorf("%d decisions stored, want one", n)
			}
			if s := w.counts(r); s.Unavailable() != 1 || s.Withdrawn() != 1 || s.DeadLettered() != 0 {
				t.Errorf("unavailable %d, withdrawn %d, dead %d, want 1, 1, 0", s.Unavailable(), s.Withdrawn(), s.DeadLettered())
			}
		})
	}
}

func TestThePublishedDecisionCounts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		published, decided int // codes
		withdrawn          []string
	}{
		"an allow after a published 9008 is taken back":    {9008, 0, []string{"x"}},
		"an allow after a published denial is taken back":  {9001, 0, []string{"x"}},
		"a repeated allow stays":                           {0, 0, nil},
		"a denial after a published allow changes nothing": {0, 9001, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ask := enforcement.Request{WorkspaceID: "acme", ExecutionID: "x", EventID: "ask-x", EventSource: "test"}
			decision := func(code int, message string) schemas.DecisionMade {
				d := denied(ask, code, message, time.Now())
				d.Allowed = code == 0
				return d
			}
			first := decision(test.published, "published first")
			w.publish(w.topology.Decision("acme"), body(w, first.DecisionID, first), nats.Header{"Nats-Msg-Id": {first.DecisionID}})
			j := &judge{admit: func(enforcement.Request) enforcement.Result {
				return enforcement.Result{Decision: decision(test.decided, "decided later")}
			}}
			w.start(j)
			inbox, err := w.nats.SubscribeSync("_INBOX.me")
			if err != nil {
				t.Fatal(err)
			}
			w.request("acme", "x", nats.Header{"Headroom-Reply": {"_INBOX.me"}})
			m, err := inbox.NextMsg(patience)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := schemas.Decode[schemas.DecisionMade](w.topology.Decision("acme"), m.Data)
			if err != nil || answer.Data.Message != "published first" {
				t.Errorf("the requester heard %q, %v, want the published decision", answer.Data.Message, err)
			}
			w.settled("requested")
			if diff := cmp.Diff(test.withdrawn, j.told(&j.withdrawn)); diff != "" {
				t.Errorf("withdrawals (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALateAnswerIsThrownAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := 0
	slow := make(chan struct{})
	j := &judge{admit: func(r enforcement.Request) enforcement.Result {
		if asked++; asked == 1 {
			<-slow
			d := allowed(r)
			d.Message = "too late"
			return enforcement.Result{Decision: d}
		}
		return enforcement.Result{Decision: allowed(r)}
	}}
	w.start(j, func(o *consumers.Options) { o.RebuildFence = 50 * time.Millisecond })
	w.request("acme", "x")
	time.AfterFunc(100*time.Millisecond, func() { close(slow) })
	if got := w.decisions(1); got[0].Message == "too late" {
		t.Error("a decision older than the fence was published")
	}
	w.settled("requested")
}

func TestShadowDeniesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := &judge{admit: func(r enforcement.Request) enforcement.Result {
		return enforcement.Result{Decision: denied(r, 9001, "All used.", time.Now())}
	}}
	r := w.start(j, func(o *consumers.Options) { o.Shadow = true })
	w.request("acme", "x")
	got := w.decisions(1)[0]
	if !got.Allowed || !got.Shadow || got.Code != 9001 || got.Error != "PlanExecutionLimitReached" {
		t.Errorf("decision is allowed %t, shadow %t, code %d, error %q, want allowed in shadow with what it would have been",
			got.Allowed, got.Shadow, got.Code, got.Error)
	}
	w.settled("requested")
	if s := w.counts(r); s.Denied() != 1 || s.Allowed() != 0 {
		t.Errorf("denied %d, allowed %d, want 1 and 0", s.Denied(), s.Allowed())
	}
}
