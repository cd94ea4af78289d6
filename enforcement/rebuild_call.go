package enforcement

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// rebuildCall tells Redis what the ledger knows of a workspace.
func (e *Enforcer) rebuildCall(turn *rebuilding, known Usage) (*call, error) {
	t := turn.group.terms
	args := []any{
		e.window, turn.token, turn.epoch, t.UsageEpoch, milliseconds(t.PeriodEnd.UnixMilli()),
		milliseconds(max(known.Used, 0)), milliseconds(max(known.Peak, 0)),
		t.digest, t.packed, milliseconds(t.LeaseMS), milliseconds(t.revision), milliseconds(t.fence()),
		milliseconds(arrival(t, known)),
	}
	charged := periodTerms{present: t, digests: map[string]string{"": t.digest, t.UsageEpoch: t.digest}}
	executions := make([]any, 0, 5*(len(known.Leases)+len(known.Over)))
	for _, l := range known.Leases {
		digest, err := charged.digest(l.UsageEpoch)
		if err != nil {
			return nil, err
		}
		executions = append(executions, l.ExecutionID, "A", milliseconds(l.ExpiresAt.UnixMilli()), digest, e.admittedAt(l.AdmittedAt))
	}
	for _, o := range known.Over {
		digest, err := charged.digest(o.UsageEpoch)
		if err != nil {
			return nil, err
		}
		executions = append(executions, o.ExecutionID, o.status(), "0", digest, e.admittedAt(o.AdmittedAt))
	}
	args = append(append(append(args, charged.args...), ""), executions...)
	return &call{script: rebuildScript, keys: e.keys(turn.group.workspace), args: args}, nil
}

// status is the one that its record has.
func (o Over) status() string {
	switch status := outcomeStatus[o.Outcome]; {
	case status == "":
		return "A"
	case o.AdmittedAt.IsZero():
		return strings.ToLower(status)
	default:
		return status
	}
}

// admittedAt is for a record: of what is not known when, now.
func (e *Enforcer) admittedAt(at time.Time) string {
	if at.IsZero() {
		at = e.clock.at(e.now())
	}
	return milliseconds(at.UnixMilli())
}

// periodTerms are the terms that executions are recorded under. What was charged to
// another period is recorded under terms that name that period, so that a unit given
// back goes where it was taken.
type periodTerms struct {
	present *terms
	digests map[string]string // by usage epoch
	args    []any             // three for each but the present ones, as the script takes them
}

func (p *periodTerms) digest(usageEpoch string) (string, error) {
	if digest, ok := p.digests[usageEpoch]; ok {
		return digest, nil
	}
	of := p.present.snapshot
	of.UsageEpoch = usageEpoch
	digest, packed, err := of.pack()
	if err != nil {
		return "", fmt.Errorf("encode terms of period %s: %w", usageEpoch, err)
	}
	p.digests[usageEpoch] = digest
	p.args = append(p.args, digest, packed, usageEpoch)
	return digest, nil
}

// arrival is the arrival time of the start rate after all known starts, in µs.
func arrival(t *terms, known Usage) int64 {
	rate, bounded := t.Limits.MaxExecutionsPerMinute.Value()
	if !bounded || rate <= 0 {
		return 0
	}
	var starts []time.Time
	for _, l := range known.Leases {
		starts = append(starts, l.AdmittedAt)
	}
	for _, o := range known.Over {
		starts = append(starts, o.AdmittedAt)
	}
	slices.SortFunc(starts, time.Time.Compare)
	gap := time.Minute / time.Duration(rate)
	var next time.Time
	for _, start := range starts {
		if start.After(next) {
			next = start
		}
		next = next.Add(gap)
	}
	return max(next.UnixMicro(), 0)
}
