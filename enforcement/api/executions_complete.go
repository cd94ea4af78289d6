package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
)

// sourceDoors is the CloudEvents source of completions that were told at a door.
const sourceDoors = "/api"

// completion is one caller's word that an execution is over.
type completion struct {
	over    enforcement.Completion
	message schemas.Message
	// stored: the executions stream has it.
	stored atomic.Bool
}

// Complete says that an execution is over: it is first stored in the executions stream,
// so that the ledger and the consumers hear of it and no outage loses it, and then its
// slot is freed in Redis. The consumers apply it again, which changes nothing. tasks is how
// many there were, nil if unknown. eventID is the caller's key or empty; the same
// completion under the same key is the same message.
//
// Released is also true where this very completion was applied before, by a consumer
// that was faster or an earlier call; the same goes for Refunded. A Prior of another
// outcome stands, and the caller's is ignored.
//
// The error is a *usage.InvalidArgument for a request that is wrong itself. Otherwise it
// wraps enforcement.ErrUnavailable, and ErrRecorded as well if the completion is in the
// stream and will be applied. Without ErrRecorded it is not known to be stored: say it again.
func (e *Executions) Complete(ctx context.Context, c enforcement.Completion, tasks *int64, eventID string) (enforcement.Release, error) {
	question, err := e.completion(ctx, c, tasks, eventID)
	if err != nil {
		return enforcement.Release{}, err
	}
	waiting, cancel := e.patient(ctx, time.Time{})
	defer cancel()
	r, err := answer(waiting, e, &e.completions, question)
	switch {
	case err == nil:
		e.stats.completed.Add(1)
		return r, nil
	case question.stored.Load():
		e.stats.recorded.Add(1)
		err = fmt.Errorf("%w: %w", ErrRecorded, err)
	}
	return enforcement.Release{}, fmt.Errorf("complete execution %s of workspace %s: %w", c.ExecutionID, c.WorkspaceID, err)
}

// completion makes the event and checks it.
func (e *Executions) completion(ctx context.Context, c enforcement.Completion, tasks *int64, eventID string) (*completion, error) {
	if err := checkNames(c.WorkspaceID, c.ExecutionID); err != nil {
		return nil, err
	}
	id := completionID(c, eventID)
	body, err := schemas.Encode(schemas.NewEvent(sourceDoors, id, e.options.Now(), schemas.ExecutionCompleted{
		WorkspaceID: c.WorkspaceID, ExecutionID: c.ExecutionID, Outcome: c.Outcome, Tasks: tasks,
	}))
	var fault *schemas.DecodeError
	if errors.As(err, &fault) {
		return nil, &usage.InvalidArgument{Field: strings.TrimPrefix(fault.Field, "data."), Detail: fault.Detail}
	}
	if err != nil {
		return nil, fmt.Errorf("encode the completion of execution %s: %w", c.ExecutionID, err)
	}
	return &completion{over: c, message: schemas.Message{
		Subject: e.options.Topology.Completed(c.WorkspaceID), ID: id, Body: body, Header: schemas.TraceOf(traceOf(ctx)),
	}}, nil
}

// completionID is the id of a completion's event, and of its message. Message ids are one
// namespace for all who publish to the stream, so a caller's key never is one by itself: one
// workspace's key must not make another's completion a duplicate.
func completionID(c enforcement.Completion, key string) string {
	parts := strings.Join([]string{"completed", c.WorkspaceID, c.ExecutionID, string(c.Outcome), key}, "\x00")
	return uuid.NewHash(sha256.New(), uuid.Nil, []byte(parts), 8).String()
}

type pendingCompletion = pending[*completion, enforcement.Release]

// complete answers a batch of completions.
func (e *Executions) complete(batch []*pendingCompletion) {
	ctx, cancel := e.flight(len(batch))
	defer cancel()
	e.record(ctx, batch)
	stored := make([]*pendingCompletion, 0, len(batch))
	over := make([]enforcement.Completion, 0, len(batch))
	for _, each := range batch {
		if each.err == nil {
			stored, over = append(stored, each), append(over, each.question.over)
		}
	}
	if len(stored) == 0 {
		return
	}
	for i, r := range e.options.Enforcer.Release(ctx, over) {
		if stored[i].err = r.Err; r.Err == nil {
			stored[i].answer = applied(r, over[i].Outcome)
		}
	}
}

// record stores what is not stored yet.
func (e *Executions) record(ctx context.Context, batch []*pendingCompletion) {
	var unstored []*pendingCompletion
	var messages []schemas.Message
	for _, each := range batch {
		if !each.question.stored.Load() {
			unstored, messages = append(unstored, each), append(messages, each.question.message)
		}
	}
	if len(messages) == 0 {
		return
	}
	for i, result := range e.options.Events.PublishAll(ctx, messages) {
		if unstored[i].err = result.Err; result.Err == nil {
			unstored[i].question.stored.Store(true)
		}
	}
}

// applied is a release as its caller sees it, whoever applied the completion first.
func applied(r enforcement.Release, outcome schemas.Outcome) enforcement.Release {
	if r.Known && r.Prior == outcome {
		r.Released = true
		r.Refunded = r.Refunded || outcome == schemas.OutcomeNotStarted
	}
	return r
}
