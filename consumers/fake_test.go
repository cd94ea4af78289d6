package consumers_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

// judge is an enforcer that answers what a test tells it to, and allows otherwise.
// It is safe for concurrent use; its functions are called one at a time.
type judge struct {
	mu        sync.Mutex
	admit     func(enforcement.Request) enforcement.Result
	withdraw  func(enforcement.Request) error
	extend    func(enforcement.Progress) enforcement.Extension
	release   func(enforcement.Completion) enforcement.Release
	asked     []string // executions, in the order of the calls
	batches   []int
	withdrawn []string
	released  []string
	open      func(workspace string) error
	opened    []string // workspaces
}

func (j *judge) Admit(_ context.Context, requests []enforcement.Request) []enforcement.Result {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.batches = append(j.batches, len(requests))
	results := make([]enforcement.Result, len(requests))
	for i, r := range requests {
		j.asked = append(j.asked, r.ExecutionID)
		results[i] = enforcement.Result{Decision: allowed(r)}
		if j.admit != nil {
			results[i] = j.admit(r)
		}
	}
	return results
}

func (j *judge) Withdraw(_ context.Context, requests []enforcement.Request) []enforcement.Result {
	j.mu.Lock()
	defer j.mu.Unlock()
	results := make([]enforcement.Result, len(requests))
	for i, r := range requests {
		j.withdrawn = append(j.withdrawn, r.ExecutionID)
		if j.withdraw != nil {
			results[i].Err = j.withdraw(r)
		}
	}
	return results
}

func (j *judge) Unavailable(r enforcement.Request, reason string, at time.Time) schemas.DecisionMade {
	return denied(r, enforcement.CodeUnavailable, reason, at)
}

func (j *judge) Extend(_ context.Context, progress []enforcement.Progress) []enforcement.Extension {
	j.mu.Lock()
	defer j.mu.Unlock()
	results := make([]enforcement.Extension, len(progress))
	for i, p := range progress {
		if j.extend != nil {
			results[i] = j.extend(p)
		}
	}
	return results
}

func (j *judge) Release(_ context.Context, completions []enforcement.Completion) []enforcement.Release {
	j.mu.Lock()
	defer j.mu.Unlock()
	results := make([]enforcement.Release, len(completions))
	for i, c := range completions {
		j.released = append(j.released, c.ExecutionID)
		results[i] = enforcement.Release{Known: true, Released: true}
		if j.release != nil {
			results[i] = j.release(c)
		}
	}
	return results
}

func (j *judge) OpenPeriods(_ context.Context, workspaces []string) []error {
	j.mu.Lock()
	defer j.mu.Unlock()
	errs := make([]error, len(workspaces))
	for i, ws := range workspaces {
		if j.open != nil {
			errs[i] = j.open(ws)
		}
		j.opened = append(j.opened, ws)
	}
	return errs
}

// told is a copy of what was recorded.
func (j *judge) told(list *[]string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), *list...)
}

func allowed(r enforcement.Request) schemas.DecisionMade {
	d := denied(r, 0, "Allowed.", time.Now())
	d.Allowed = true
	return d
}

func denied(r enforcement.Request, code int, message string, at time.Time) schemas.DecisionMade {
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	return schemas.DecisionMade{
		DecisionID: "decision-" + r.ExecutionID + "-" + r.EventID, Kind: schemas.KindAdmission,
		WorkspaceID: r.WorkspaceID, ExecutionID: r.ExecutionID,
		RequestEventID: r.EventID, RequestEventSource: r.EventSource,
		Code: code, Error: enforcement.CodeName(code), Message: message, Limit: enforcement.LimitOfCode(code),
		PlanKey: "free", PlanRevision: 1, PeriodStart: start, PeriodEnd: start.AddDate(0, 1, 0),
		PlanAsOf: at.UTC(), DecidedAt: at.UTC(), Exact: true,
	}
}

// asking is a request for an execution of workspace acme.
func asking(execution string) enforcement.Request {
	return enforcement.Request{WorkspaceID: "acme", ExecutionID: execution, EventID: "e", EventSource: "test"}
}

// eavesdropper is a log that waits for a message.
type eavesdropper struct {
	slog.Handler
	wanted string
	heard  chan struct{}
}

func eavesdrop(wanted string) *eavesdropper {
	return &eavesdropper{Handler: slog.DiscardHandler, wanted: wanted, heard: make(chan struct{}, 1)}
}

func (*eavesdropper) Enabled(context.Context, slog.Level) bool { return true }

func (l *eavesdropper) Handle(_ context.Context, r slog.Record) error {
	if r.Message == l.wanted {
		select {
		case l.heard <- struct{}{}:
		default:
		}
	}
	return nil
}

func (l *eavesdropper) listen(o *consumers.Options) { o.Log = slog.New(l) }

func (l *eavesdropper) wait(t *testing.T) {
	t.Helper()
	select {
	case <-l.heard:
	case <-time.After(patience):
		t.Fatalf("not logged in time: %s", l.wanted)
	}
}
