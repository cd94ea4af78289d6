package consumers

import (
	"context"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

const codeUnavailable = enforcement.CodeUnavailable

// admitter decides whether executions may start; enforcement.Enforcer is one.
type admitter interface {
	Admit(ctx context.Context, requests []enforcement.Request) []enforcement.Result
	Withdraw(ctx context.Context, requests []enforcement.Request) []enforcement.Result
	Unavailable(r enforcement.Request, reason string, at time.Time) schemas.DecisionMade
}

// requested answers execution.requested: each with exactly one decision.
//
//	decode ─► Admit ─► publish, await ─► reply ─► acknowledge
//	            │         └ the stream holds a denial already: Withdraw what Admit allowed
//	            └ away or late: defer, and past the budget or the deadline
//	                    publish a 9008 ─► Withdraw, on the next deliveries ─► acknowledge
type requested struct {
	enforcer admitter
	answers  *answers
	memory   *memory
	breaker  *breaker
	stats    *Stats
	// budget is how long a request is put off before it is refused with a 9008.
	budget time.Duration
	// fence is how old a script's answer may be when it is published: an instance
	// that was asleep must not publish what a rebuild has overtaken.
	fence time.Duration
	now   func() time.Time
	probe probe
}

// question is a request under way.
type question struct {
	index   int // in the batch
	message *message
	request enforcement.Request
	asked   time.Time
	// fault is why no decision could be taken.
	fault error
}

func (h *requested) handle(ctx context.Context, batch []*message) []error {
	verdicts := make([]error, len(batch))
	var fresh, refused []question
	for i, m := range batch {
		request, err := readRequest(m)
		if err != nil {
			verdicts[i] = refusedBody(err)
			continue
		}
		q := question{index: i, message: m, request: request}
		if h.memory.isRefused(m.sequence) {
			refused = append(refused, q)
		} else {
			fresh = append(fresh, q)
		}
	}
	h.admit(ctx, fresh, verdicts)
	h.withdraw(ctx, refused, verdicts)
	return verdicts
}

func readRequest(m *message) (enforcement.Request, error) {
	event, err := schemas.Decode[schemas.ExecutionRequested](m.subject, m.body)
	if err != nil {
		return enforcement.Request{}, err
	}
	request := enforcement.Request{
		WorkspaceID: event.Data.WorkspaceID, ExecutionID: event.Data.ExecutionID,
		EventID: event.ID, EventSource: event.Source,
	}
	if event.Data.PayloadBytes != nil {
		request.PayloadBytes = *event.Data.PayloadBytes
	}
	if event.Data.Deadline != nil {
		request.Deadline = *event.Data.Deadline
	}
	return request, nil
}

func (h *requested) admit(ctx context.Context, questions []question, verdicts []error) {
	if len(questions) == 0 {
		return
	}
	started := h.now()
	for i := range questions {
		questions[i].asked = started
	}
	if h.breaker.wait(started) > 0 {
		for i := range questions {
			questions[i].fault = errPaused
		}
		h.refuse(ctx, questions, verdicts)
		return
	}
	results := h.ask(ctx, questions)
	h.probe.at(kindRequested, "decided")
	// A plan that cannot be read is no reason to keep those waiting whose plan is known: it
	// is the plans' cache that spares a database that is away.
	tell(h.breaker, h.now(), results, func(r enforcement.Result) (bool, bool) { return unavailable(r.Err) })
	out := outgoing{until: started.Add(h.fence)}
	isLate := !h.now().Before(out.until)
	var undecided []question
	for i, q := range questions {
		if q.fault = results[i].Err; q.fault == nil && isLate {
			q.fault = errLate
		}
		if q.fault != nil {
			undecided = append(undecided, q)
			continue
		}
		out.questions, out.decisions = append(out.questions, q), append(out.decisions, results[i].Decision)
	}
	h.answer(ctx, out, verdicts)
	h.refuse(ctx, undecided, verdicts)
}

// ask waits for no longer than an answer is worth anything.
func (h *requested) ask(ctx context.Context, questions []question) []enforcement.Result {
	ctx, cancel := context.WithTimeout(ctx, h.fence)
	defer cancel()
	return h.enforcer.Admit(ctx, requestsOf(questions))
}

func requestsOf(questions []question) []enforcement.Request {
	requests := make([]enforcement.Request, len(questions))
	for i, q := range questions {
		requests[i] = q.request
	}
	return requests
}

// outgoing is what Admit decided, and until when it may be published.
type outgoing struct {
	questions []question
	decisions []schemas.DecisionMade
	until     time.Time
}

func (h *requested) answer(ctx context.Context, out outgoing, verdicts []error) {
	if len(out.questions) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, out.until.Sub(h.now()))
	defer cancel()
	all := make([]*answer, len(out.questions))
	for i, q := range out.questions {
		all[i] = &answer{about: q.message, decision: out.decisions[i], inbox: h.answers.replies.inbox(q.message)}
	}
	h.answers.publish(ctx, all)
	var overruled []question
	for i, q := range out.questions {
		switch {
		case all[i].err != nil:
			verdicts[q.index] = notStored(all[i].err)
		case all[i].overruled():
			h.memory.refuse(q.message.sequence, h.now())
			overruled = append(overruled, q)
		}
	}
	h.withdraw(ctx, overruled, verdicts)
}
