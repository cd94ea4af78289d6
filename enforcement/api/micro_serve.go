package api

import (
	"context"
	"errors"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/enforcement/usage"
)

// claimantMicro holds the keys of the micro-service. No token has such a name.
const claimantMicro = "/nats"

// known is that of HTTP.
func (m *Micro) known(ctx context.Context, a *ask, endpoint string) error {
	if a.key == "" || m.options.Claims == nil {
		return nil
	}
	return checkClaim(ctx, m.options.Claims, Claim{
		Token: claimantMicro, Workspace: a.WorkspaceID, Key: a.key, Fingerprint: fingerprint(endpoint, string(a.body)),
	})
}

func askAdmit(ctx context.Context, m *Micro, a *ask) (microAnswer, error) {
	b, err := part[admitBody](a)
	if err != nil {
		return microAnswer{}, err
	}
	if err := m.known(ctx, a, "admit"); err != nil {
		return microAnswer{}, err
	}
	decision, err := m.options.Executions.Admit(ctx, enforcement.Request{
		WorkspaceID: a.WorkspaceID, ExecutionID: b.ExecutionID, PayloadBytes: b.PayloadBytes,
		EventID: a.event(), EventSource: sourceMicro,
	})
	if err != nil {
		return microAnswer{}, err
	}
	return told(decision)
}

func askProgress(ctx context.Context, m *Micro, a *ask) (microAnswer, error) {
	b, err := part[progressBody](a)
	if err != nil {
		return microAnswer{}, err
	}
	x, err := m.options.Executions.Progress(ctx, enforcement.Progress{
		WorkspaceID: a.WorkspaceID, ExecutionID: a.ExecutionID, EventID: a.event(), EventSource: sourceMicro,
		Tasks: b.Tasks, PayloadBytes: b.PayloadBytes,
	})
	switch {
	case err != nil:
		return microAnswer{}, err
	case x.Decision != nil && !x.Decision.Allowed:
		return told(*x.Decision)
	case !x.Live:
		return microAnswer{}, problems.New(problems.NotRunning, "this execution holds no lease: it was never admitted, is over, or its lease ended")
	}
	return told(progressAnswer{ExecutionID: a.ExecutionID, LeaseExpiresAt: x.LeaseExpiresAt.UTC()})
}

func askComplete(ctx context.Context, m *Micro, a *ask) (microAnswer, error) {
	b, err := part[completeBody](a)
	if err != nil {
		return microAnswer{}, err
	}
	if err := m.known(ctx, a, "complete"); err != nil {
		return microAnswer{}, err
	}
	released, err := m.options.Executions.Complete(ctx, enforcement.Completion{
		WorkspaceID: a.WorkspaceID, ExecutionID: a.ExecutionID, Outcome: b.Outcome,
	}, b.Tasks, a.key)
	if err != nil {
		return microAnswer{}, err
	}
	return told(completeAnswer{Released: released.Released})
}

func askConsume(ctx context.Context, m *Micro, a *ask) (microAnswer, error) {
	answer, err := changed(ctx, a, m.options.Counters.ConsumeOnce)
	if isRefusal(err) {
		return microAnswer{contentType: problems.ContentType, body: problemOf(err, "urn:uuid:"+newID()).Body()}, nil
	}
	return answer, err
}

// isRefusal reports an answer to a consume that was right: the plan has no room for it. A
// feature that does not exist or is not counted is a wrong request.
func isRefusal(err error) bool {
	var (
		quota  *usage.QuotaExceeded
		locked *usage.ResourceLocked
		policy *usage.PolicyViolation
	)
	return errors.As(err, &quota) || errors.As(err, &locked) || errors.As(err, &policy) && !policy.Unknown && !policy.Uncounted
}

func askRelease(ctx context.Context, m *Micro, a *ask) (microAnswer, error) {
	return changed(ctx, a, m.options.Counters.ReleaseOnce)
}

func changed(
	ctx context.Context, a *ask, change func(context.Context, usage.Once, usage.Change) (usage.Balance, error),
) (microAnswer, error) {
	b, err := part[changeBody](a)
	if err != nil {
		return microAnswer{}, err
	}
	quantity := int64(1)
	if b.Quantity != nil {
		quantity = *b.Quantity
	}
	balance, err := change(ctx, usage.Once{Scope: sourceMicro, Key: a.key}, usage.Change{
		WorkspaceID: a.WorkspaceID, Feature: a.Feature, Quantity: quantity, ResourceID: b.ResourceID, CreatedAt: b.CreatedAt,
	})
	if err != nil {
		return microAnswer{}, err
	}
	return told(balanceAnswer{
		Used: balance.Used, Limit: balance.Limit.Pointer(), Unlimited: balance.Limit.IsUnlimited(),
		Remaining: balance.Remaining(), ResetsAt: problems.InUTC(balance.ResetsAt),
	})
}

func askCheck(ctx context.Context, m *Micro, a *ask) (microAnswer, error) {
	b, err := part[checkBody](a)
	if err != nil {
		return microAnswer{}, err
	}
	answers, err := m.options.Reader.Check(ctx, a.WorkspaceID, b.Checks)
	if err != nil {
		return microAnswer{}, err
	}
	return told(checkAnswer{Checks: answers})
}

func askUsage(ctx context.Context, m *Micro, a *ask) (microAnswer, error) {
	view, err := m.options.Reader.Workspace(ctx, a.WorkspaceID)
	if err != nil {
		return microAnswer{}, err
	}
	return told(view)
}
