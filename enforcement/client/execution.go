package client

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
)

// Execution is what an engine wants to start.
type Execution struct {
	// WorkspaceID is whose plan it counts on.
	WorkspaceID string
	// ID is the engine's own name of the execution: a letter or digit, then at most
	// 127 letters, digits, - and _; once per workspace. The id of the engine's job
	// serves well: a job that is tried again is then allowed again and charged once.
	ID string
	// PayloadBytes is the size of what it was given, 0 if unknown.
	PayloadBytes int64
	// Deadline is when an answer becomes worthless: Headroom denies with 9008 rather
	// than allow later than that by its own clock. Zero is never.
	Deadline time.Time
	// Once says that nobody will ask for this id again. Then, when Admit returns
	// without having heard every answer, an execution.completed event with
	// not_started follows by itself, so that an allow that nobody heard gives its
	// slot and its quota unit back; the id is over after that (ErrOver). Without
	// Once such an allow waits to be asked for again, until its lease ends.
	Once bool
	// Header travels with the request; traceparent and tracestate go on to the decision.
	Header nats.Header
}

// requested is the event that asks for the execution, once.
func (c *Client) requested(e Execution, id string) (*nats.Msg, error) {
	data := schemas.ExecutionRequested{WorkspaceID: e.WorkspaceID, ExecutionID: e.ID}
	if e.PayloadBytes > 0 {
		data.PayloadBytes = &e.PayloadBytes
	}
	if !e.Deadline.IsZero() {
		deadline := e.Deadline.UTC()
		data.Deadline = &deadline
	}
	m, err := message(c.topology.Requested(e.WorkspaceID), schemas.NewEvent(c.source, id, c.now(), data))
	if err != nil {
		return nil, fmt.Errorf("write the request for execution %q: %w", e.ID, err)
	}
	own := m.Header
	m.Header = maps.Clone(e.Header)
	if m.Header == nil {
		m.Header = make(nats.Header, len(own))
	}
	maps.Copy(m.Header, own)
	return m, nil
}

// Request publishes the request and does not wait for the decision, for an engine
// that reads its decisions from the stream (see OpenDecisions). It returns the
// event's id, which the decision repeats as request_event_id, once the stream has
// stored it; an error means that it may be stored or not: ask again.
func (c *Client) Request(ctx context.Context, e Execution) (eventID string, err error) {
	eventID = newID()
	m, err := c.requested(e, eventID)
	if err != nil {
		return "", err
	}
	if err := c.store(ctx, m); err != nil {
		return "", fmt.Errorf("request execution %s: %w", e.ID, err)
	}
	return eventID, nil
}

// Completion says that an execution is over.
type Completion struct {
	WorkspaceID string
	ExecutionID string
	Outcome     schemas.Outcome
	// Tasks is how many it had, 0 if unknown.
	Tasks int64
}

// Complete frees an execution's slot, whoever ran it, and returns when the event is
// stored: it is sent until then, or until ctx ends. The first outcome of an
// execution counts. schemas.OutcomeNotStarted gives the quota unit back too, and is
// right for an execution that will not be asked for again. Run.Complete does it for
// an execution that this process runs.
func (c *Client) Complete(ctx context.Context, done Completion) error {
	m, err := c.completed(done)
	if err != nil {
		return fmt.Errorf("complete execution %s: %w", done.ExecutionID, err)
	}
	if err := c.store(ctx, m); err != nil {
		return fmt.Errorf("complete execution %s: %w", done.ExecutionID, err)
	}
	return nil
}

// completed has the same id for the same completion, so that the stream takes a
// second one for a repetition.
func (c *Client) completed(done Completion) (*nats.Msg, error) {
	data := schemas.ExecutionCompleted{WorkspaceID: done.WorkspaceID, ExecutionID: done.ExecutionID, Outcome: done.Outcome}
	if done.Tasks > 0 {
		data.Tasks = &done.Tasks
	}
	name := c.topology.Completed(done.WorkspaceID) + "/" + done.ExecutionID + "/" + string(done.Outcome)
	id := uuid.NewSHA1(uuid.Nil, []byte(name)).String()
	return message(c.topology.Completed(done.WorkspaceID), schemas.NewEvent(c.source, id, c.now(), data))
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
