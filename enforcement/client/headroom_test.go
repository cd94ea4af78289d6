package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// headroom answers what an engine publishes as Headroom does, with a real Enforcer:
// in the order of the stream, one event at a time.
type headroom struct {
	*enforcement.Enforcer
	t  *testing.T
	nc *nats.Conn
	js jetstream.JetStream

	mu sync.Mutex
	// reply is what is done with a decision instead of sending it to the inbox.
	reply func(asked)
	// shadow marks each decision and denies nothing.
	shadow bool
	// requests are the events that asked, in order.
	requests []asked
	changed  chan struct{}
}

// asked is a request and the decision on it.
type asked struct {
	event    schemas.Event[schemas.ExecutionRequested]
	decision schemas.DecisionMade
	header   nats.Header
}

func (a asked) inbox() string { return a.header.Get("Headroom-Reply") }

// onePlan is the terms of every workspace.
type onePlan struct{ info subscriptions.PlanInfo }

func (p onePlan) Lookup(_ context.Context, workspace string, _ time.Time) (subscriptions.PlanInfo, error) {
	p.info.WorkspaceID = workspace
	return p.info, nil
}

func (onePlan) Invalidate(string, int64) {}

// unused is the usage of workspaces that nobody has used.
type unused struct{}

func (unused) Usage(context.Context, string, string) (enforcement.Usage, error) {
	return enforcement.Usage{}, nil
}

const epoch = "epoch-1"

// limits bounds nothing but what set sets.
func limits(set func(*schemas.Limits)) schemas.Limits {
	var l schemas.Limits
	for _, name := range schemas.LimitNames {
		*l.Named(name) = schemas.Unlimited
	}
	if set != nil {
		set(&l)
	}
	return l
}

// newHeadroom starts to answer; lease is what a plan without a longest duration gets.
func newHeadroom(t *testing.T, l schemas.Limits, lease time.Duration) *headroom {
	t.Helper()
	js, err := jetstream.New(schematest.NATS(t))
	if err != nil {
		t.Fatal(err)
	}
	return newHeadroomOver(t, js, l, lease)
}

// newHeadroomOver does so on a server of the caller's.
func newHeadroomOver(t *testing.T, js jetstream.JetStream, l schemas.Limits, lease time.Duration) *headroom {
	t.Helper()
	if _, err := (schemas.Topology{}).Ensure(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	plan := onePlan{subscriptions.PlanInfo{
		Revision: 1, UsageEpoch: epoch, Status: "active", SubscriptionID: "0197c3f0-0000-7000-8000-000000000001",
		Period:   subscriptions.Period{Start: now.Add(-time.Hour), End: now.Add(24 * time.Hour)},
		Snapshot: subscriptions.Snapshot{PlanKey: "pro", PlanRevision: 3, Limits: l},
		ReadAt:   now, Exact: true,
	}}
	h := &headroom{
		t: t, nc: js.Conn(), js: js, changed: make(chan struct{}),
		Enforcer: enforcement.New(enforcement.Options{
			Redis: schematest.Redis(t), Plans: plan, Usage: unused{}, LeaseGrace: time.Minute, LeaseDefault: lease,
		}),
	}
	h.reply = h.send
	events, err := js.OrderedConsumer(t.Context(), schemas.Topology{}.Stream(schemas.StreamExecutions), jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	reading, err := events.Consume(h.take)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		reading.Stop()
		<-reading.Closed()
	})
	return h
}

func (h *headroom) take(m jetstream.Msg) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.t.Context()), patience)
	defer cancel()
	switch {
	case strings.Contains(m.Subject(), ".requested."):
		event, err := schemas.Decode[schemas.ExecutionRequested](m.Subject(), m.Data())
		if err != nil {
			h.t.Error(err)
			return
		}
		request := enforcement.Request{
			WorkspaceID: event.Data.WorkspaceID, ExecutionID: event.Data.ExecutionID, EventID: event.ID, EventSource: event.Source,
		}
		if event.Data.PayloadBytes != nil {
			request.PayloadBytes = *event.Data.PayloadBytes
		}
		result := h.Admit(ctx, []enforcement.Request{request})[0]
		if result.Err != nil {
			h.t.Error(result.Err)
			return
		}
		h.answer(ctx, asked{event: event, decision: result.Decision, header: m.Headers()})
	case strings.Contains(m.Subject(), ".progressed."):
		event, err := schemas.Decode[schemas.ExecutionProgressed](m.Subject(), m.Data())
		if err != nil {
			h.t.Error(err)
			return
		}
		extension := h.Extend(ctx, []enforcement.Progress{{
			WorkspaceID: event.Data.WorkspaceID, ExecutionID: event.Data.ExecutionID, EventID: event.ID, EventSource: event.Source,
			Tasks: event.Data.Tasks, PayloadBytes: event.Data.PayloadBytes, StartedAt: *event.Data.StartedAt, At: event.Time,
		}})[0]
		if extension.Decision != nil {
			h.publish(ctx, *extension.Decision)
		}
	default:
		event, err := schemas.Decode[schemas.ExecutionCompleted](m.Subject(), m.Data())
		if err != nil {
			h.t.Error(err)
			return
		}
		h.Release(ctx, []enforcement.Completion{{
			WorkspaceID: event.Data.WorkspaceID, ExecutionID: event.Data.ExecutionID, Outcome: event.Data.Outcome,
		}})
	}
}

func (h *headroom) answer(ctx context.Context, a asked) {
	h.mu.Lock()
	if h.shadow {
		a.decision.Shadow, a.decision.Allowed = true, true
	}
	h.requests = append(h.requests, a)
	close(h.changed)
	h.changed = make(chan struct{})
	reply := h.reply
	h.mu.Unlock()
	h.publish(ctx, a.decision)
	if a.inbox() != "" {
		reply(a)
	}
}

// publish puts a decision into the stream.
func (h *headroom) publish(ctx context.Context, d schemas.DecisionMade) {
	if _, err := h.js.Publish(ctx, schemas.Topology{}.Decision(d.WorkspaceID), h.encode(d), jetstream.WithMsgID(d.DecisionID)); err != nil {
		h.t.Error(err)
	}
}

func (h *headroom) encode(d schemas.DecisionMade) []byte {
	body, err := schemas.Encode(schemas.NewEvent("headroom", d.DecisionID, d.DecidedAt, d))
	if err != nil {
		h.t.Error(err)
	}
	return body
}

// send is the reply as it should be.
func (h *headroom) send(a asked) { h.tell(a.inbox(), h.encode(a.decision)) }

func (h *headroom) tell(inbox string, body []byte) {
	if err := h.nc.Publish(inbox, body); err != nil {
		h.t.Error(err)
	}
}

// replies sets what becomes of replies.
func (h *headroom) replies(reply func(asked)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reply = reply
}

// awaitRequests returns the events that asked once there are as many.
func (h *headroom) awaitRequests(n int) []asked {
	h.t.Helper()
	deadline := time.After(patience)
	for {
		h.mu.Lock()
		requests, changed := h.requests, h.changed
		h.mu.Unlock()
		if len(requests) >= n {
			return requests
		}
		select {
		case <-changed:
		case <-deadline:
			h.t.Fatalf("%d requests came, want %d", len(requests), n)
		}
	}
}

// await asks for the usage of workspace ws until it is as wanted.
func (h *headroom) await(used, running int64) {
	h.t.Helper()
	until(h.t, func() (bool, any) {
		got, err := h.Outstanding(h.t.Context(), "ws", epoch)
		return err == nil && got.Used == used && got.Running == running, []any{got, err}
	})
}

// until asks until the answer is yes; else the test fails with the last state.
func until(t *testing.T, ask func() (yes bool, state any)) {
	t.Helper()
	deadline := time.After(patience)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		yes, state := ask()
		if yes {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("it stayed at %+v", state)
		case <-ticker.C:
		}
	}
}

// engine is a Client over a connection of its own.
func engine(t *testing.T, set func(*client.Options)) *client.Client {
	t.Helper()
	nc, err := nats.Connect(schematest.NATSURL(t), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	o := client.Options{Source: "test-engine", AskAgain: 200 * time.Millisecond, Log: schematest.Logger(t)}
	if set != nil {
		set(&o)
	}
	c, err := client.New(nc, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		nc.Close()
	})
	return c
}

func execution(id string) client.Execution { return client.Execution{WorkspaceID: "ws", ID: id} }

// admitted asks for an execution that has to be allowed.
func admitted(t *testing.T, c *client.Client, e client.Execution) *client.Run {
	t.Helper()
	run, err := c.Admit(t.Context(), e)
	if err != nil {
		t.Fatalf("admit %s: %v", e.ID, err)
	}
	return run
}

// deniedBy is the denial in an error.
func deniedBy(t *testing.T, err error) *client.Denied {
	t.Helper()
	denied, ok := errors.AsType[*client.Denied](err)
	if !ok {
		t.Fatalf("got %v, want a denial", err)
	}
	return denied
}
