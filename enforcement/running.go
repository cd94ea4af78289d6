package enforcement

import (
	"context"
	"fmt"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// MaxRunning bounds how many executions one RunningQuery returns.
const MaxRunning = 1000

// RunningQuery asks for the executions of a workspace that hold a live lease.
type RunningQuery struct {
	WorkspaceID string
	// Limit is how many to return, MaxRunning if 0 and never over it. Those whose lease
	// ends in the same millisecond as the last one's come on top, so that a page never
	// ends between them.
	Limit int
	// After, unless zero, leaves out leases that do not end later: the LeaseExpiresAt of
	// the last of a page asks for the next page.
	After time.Time
}

// Running is an execution that holds a live lease.
type Running struct {
	ExecutionID string
	// SubscriptionID is the period that was charged, empty for the default plan's, and
	// where Redis was rebuilt in another period since.
	SubscriptionID string
	// StartedAt is when it was admitted by Redis's clock, or when Redis learned of it
	// anew after a loss; the ledger knows better then. Zero is unknown.
	StartedAt      time.Time
	LeaseExpiresAt time.Time
	// Tasks and PayloadBytes are the most that its progress has told, nil for nothing.
	Tasks        *int64
	PayloadBytes *int64
}

// Running lists live leases as Redis knows them, the soonest to end first. It changes
// nothing and takes one round trip. The error wraps ErrUnavailable when Redis cannot
// be asked.
func (e *Enforcer) Running(ctx context.Context, q RunningQuery) ([]Running, error) {
	if !schemas.ValidID(q.WorkspaceID) {
		return nil, fmt.Errorf("read leases: workspace %.64q is not an id", q.WorkspaceID)
	}
	if q.Limit <= 0 || q.Limit > MaxRunning {
		q.Limit = MaxRunning
	}
	after := int64(0)
	if !q.After.IsZero() {
		after = max(q.After.UnixMilli(), 0)
	}
	c := &call{script: runningScript, keys: e.keys(q.WorkspaceID), args: []any{e.window, milliseconds(after), milliseconds(int64(q.Limit))}}
	e.run(ctx, []*call{c})
	if c.err != nil {
		return nil, fmt.Errorf("read leases of workspace %s: %w", q.WorkspaceID, c.err)
	}
	found, err := readRunning(c.reply)
	if err != nil {
		return nil, fmt.Errorf("read leases of workspace %s: %w", q.WorkspaceID, err)
	}
	return found, nil
}

func readRunning(reply []any) ([]Running, error) {
	n := int(integer(reply[0]))
	if n < 0 || len(reply) < 2+2*n {
		return nil, fmt.Errorf("reply has %d values for %d executions", len(reply), n)
	}
	snapshots, err := readSnapshots(reply[2+2*n:])
	if err != nil {
		return nil, err
	}
	found := make([]Running, n)
	for i := range found {
		answer := text(reply[3+2*i])
		if len(answer) < 6 {
			return nil, fmt.Errorf("answer of %d bytes", len(answer))
		}
		found[i] = Running{ExecutionID: text(reply[2+2*i]), LeaseExpiresAt: time.UnixMilli(little([]byte(answer[:6]))).UTC()}
		if len(answer) < 6+allowedLength {
			continue
		}
		rec, err := unpackRecord(answer[6:])
		if err != nil {
			return nil, fmt.Errorf("execution %s: %w", found[i].ExecutionID, err)
		}
		found[i].StartedAt, found[i].Tasks, found[i].PayloadBytes = rec.at, rec.tasks, rec.payload
		if t := snapshots[rec.digest]; t != nil {
			found[i].SubscriptionID = t.SubscriptionID
		}
	}
	return found, nil
}
