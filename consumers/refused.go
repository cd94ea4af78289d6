package consumers

import (
	"context"
	"errors"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// errPaused stands for the failure that began a breaker's pause.
var errPaused = errors.New("paused after a failure")

// errLate means that a decision was taken, but too long after it was asked for.
var errLate = errors.New("the decision took longer than the rebuild fence allows")

// refuse puts requests off that could not be decided, and answers those whose
// time is up with a 9008. Whatever kept a decision from being taken, a service
// that is away or a plan that cannot be read: no request stays without an answer.
func (h *requested) refuse(ctx context.Context, questions []question, verdicts []error) {
	now := h.now()
	var late []question
	for _, q := range questions {
		left := h.timeLeft(q, now)
		if left <= 0 {
			late = append(late, q)
			continue
		}
		delay := max(growing(q.message.delivered), h.breaker.wait(now)+shortestDelay)
		if r, is := errors.AsType[*enforcement.Rebuilding](q.fault); is {
			delay = r.After + shortestDelay
		}
		verdicts[q.index] = &Defer{Reason: "no decision can be taken", Delay: min(delay, max(left, shortestDelay)), Err: q.fault}
	}
	h.deny(ctx, late, verdicts)
}

// timeLeft is how long a request may still wait: the budget counts from when
// this process first asked for it in vain. A workspace that is refused as a whole has
// nothing to wait for.
func (h *requested) timeLeft(q question, now time.Time) time.Duration {
	if errors.Is(q.fault, subscriptions.ErrNotEntitled) {
		return 0
	}
	left := h.memory.failing(q.message.sequence, q.asked).Add(h.budget).Sub(now)
	if deadline := q.request.Deadline; !deadline.IsZero() {
		left = min(left, deadline.Sub(now))
	}
	return left
}

// reasonOf is what a denial tells of its cause: the requester reads it, so it
// names no address and no other error's text.
func reasonOf(fault error) string {
	if known := withoutPlan(fault); known != nil {
		return known.Error()
	}
	return "Redis or the plan could not be reached in time"
}

// withoutPlan is the answer of a database that was reached and has no plan for a
// workspace, nil for any other fault. No service is away then.
func withoutPlan(fault error) error {
	for _, known := range []error{subscriptions.ErrNotEntitled, subscriptions.ErrNoDefaultPlan} {
		if errors.Is(fault, known) {
			return known
		}
	}
	return nil
}

// deny publishes 9008 denials. Redis does not know of them, and may hold an
// allow that nobody heard of: the messages are kept until Withdraw has put the
// denial on record there.
func (h *requested) deny(ctx context.Context, late []question, verdicts []error) {
	if len(late) == 0 {
		return
	}
	all := make([]*answer, len(late))
	for i, q := range late {
		all[i] = &answer{
			about: q.message, inbox: h.answers.replies.inbox(q.message),
			decision: h.enforcer.Unavailable(q.request, reasonOf(q.fault), h.now()),
		}
	}
	h.answers.publish(ctx, all)
	for i, q := range late {
		switch {
		case all[i].err != nil:
			verdicts[q.index] = notStored(all[i].err)
		case mustWithdraw(all[i].stands):
			h.memory.refuse(q.message.sequence, h.now())
			verdicts[q.index] = &Defer{Reason: "denied with 9008, Redis has to hear of it", Delay: heldDelay(h.breaker, q.message, h.now())}
		}
	}
}

// mustWithdraw reports whether a published decision is one that Redis may not
// know. Any other was taken by Redis, in an earlier delivery of the same request.
func mustWithdraw(stands schemas.DecisionMade) bool { return stands.Code == codeUnavailable }

// withdraw puts the published denial of requests on record in Redis, as soon as
// it may be called.
func (h *requested) withdraw(ctx context.Context, questions []question, verdicts []error) {
	if len(questions) == 0 {
		return
	}
	results := make([]enforcement.Result, len(questions))
	if h.breaker.wait(h.now()) > 0 {
		for i := range results {
			results[i].Err = errPaused
		}
	} else {
		results = h.enforcer.Withdraw(ctx, requestsOf(questions))
		h.probe.at(kindRequested, "withdrawn")
		tell(h.breaker, h.now(), results, func(r enforcement.Result) (bool, bool) { return unavailable(r.Err) })
	}
	for i, q := range questions {
		if err := results[i].Err; err != nil {
			verdicts[q.index] = &Defer{
				Reason: "the published denial is not on record in Redis yet",
				Delay:  heldDelay(h.breaker, q.message, h.now()), Err: err,
			}
			continue
		}
		h.stats.withdrawn.Add(1)
	}
}
