package enforcement_test

import (
	e "github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

// model is what the scripts must do, said in plain Go: one workspace, one thing
// at a time, no expiry but by command. The scripts are fuzzed against it.
type model struct {
	quota, most, rate schemas.Limit // rate: starts, none of which comes back meanwhile
	epoch             string
	used, peak        map[string]int64 // by usage epoch
	starts            int64
	allowed           map[string]*allowed // by execution
	tombs             map[string]schemas.Outcome
	denied            map[question]int
}

type allowed struct {
	by, epoch string
	live      bool
	outcome   schemas.Outcome
}

type question struct{ execution, event string }

func (m *model) running() (n int64) {
	for _, a := range m.allowed {
		if a.live {
			n++
		}
	}
	return n
}

// admit returns the code, 0 for allowed, and whether the answer is a repeated one.
func (m *model) admit(q question, oversized bool) (code int, replayed bool) {
	if m.denied[q] != 0 || m.allowed[q.execution] != nil {
		return m.denied[q], true
	}
	tomb, done := m.tombs[q.execution]
	switch {
	case oversized:
		code = e.CodePayload
	case tomb != schemas.OutcomeNotStarted && m.quota.Exceeded(m.used[m.epoch]+1):
		code = e.CodeExecutionQuota
	case !done && m.most.Exceeded(m.running()+1):
		code = e.CodeConcurrency
	case !done && m.rate.Exceeded(m.starts+1):
		code = e.CodeRate
	}
	if code != 0 {
		m.denied[q] = code
		return code, false
	}
	m.allowed[q.execution] = &allowed{by: q.event, epoch: m.epoch, live: !done, outcome: tomb}
	if tomb != schemas.OutcomeNotStarted {
		m.used[m.epoch]++
	}
	if !done {
		m.starts++
		m.peak[m.epoch] = max(m.peak[m.epoch], m.running())
	}
	return 0, false
}

func (m *model) release(execution string, outcome schemas.Outcome) (r e.Release) {
	a := m.allowed[execution]
	if a == nil {
		if r.Prior = m.tombs[execution]; r.Prior == "" {
			m.tombs[execution] = outcome
		}
		return r
	}
	r.Known, r.Prior = true, a.outcome
	if a.outcome == "" {
		r.Released, r.Refunded = a.live, outcome == schemas.OutcomeNotStarted
		a.live, a.outcome = false, outcome
		if r.Refunded {
			m.used[a.epoch]--
		}
	}
	return r
}

// withdraw returns the code that stands on record afterwards.
func (m *model) withdraw(q question) int {
	a := m.allowed[q.execution]
	if m.denied[q] != 0 || a != nil && a.by == q.event && a.outcome != "" {
		return m.denied[q]
	}
	if a != nil && a.by == q.event {
		m.used[a.epoch]--
		delete(m.allowed, q.execution)
	}
	m.denied[q] = e.CodeUnavailable
	return e.CodeUnavailable
}
