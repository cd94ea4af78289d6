package enforcement_test

import (
	"time"

	e "github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

// model is what the scripts must do, in plain Go: one workspace, no expiry but by command.
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

// folded is the present period as the ledger has it.
func (m *model) folded() e.Usage {
	u := e.Usage{Used: m.used[m.epoch], Peak: m.peak[m.epoch]}
	now := time.Now()
	for id, a := range m.allowed {
		if a.live {
			u.Leases = append(u.Leases, e.Lease{ExecutionID: id, ExpiresAt: now.Add(time.Hour), UsageEpoch: a.epoch, AdmittedAt: now})
		} else {
			u.Over = append(u.Over, e.Over{ExecutionID: id, Outcome: a.outcome, UsageEpoch: a.epoch, AdmittedAt: now})
		}
	}
	for id, outcome := range m.tombs {
		if m.allowed[id] == nil {
			u.Over = append(u.Over, e.Over{ExecutionID: id, Outcome: outcome})
		}
	}
	return u
}

func (m *model) running() (n int64) {
	for _, a := range m.allowed {
		if a.live {
			n++
		}
	}
	return n
}

func (m *model) admit(q question, oversized bool) (code int, repeated bool) {
	a, known := m.allowed[q.execution], m.denied[q]
	if known == 0 && a != nil && a.by != q.event {
		a.by = "" // told to two: neither can withdraw it
	}
	if known != 0 || a != nil {
		return known, true
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

func (m *model) withdraw(q question) (onRecord int) {
	if m.denied[q] != 0 {
		return m.denied[q]
	}
	if a := m.allowed[q.execution]; a != nil && a.by == q.event && a.outcome == "" {
		m.used[a.epoch]--
		delete(m.allowed, q.execution)
	}
	m.denied[q] = e.CodeUnavailable
	return e.CodeUnavailable
}
