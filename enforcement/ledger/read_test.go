package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

func TestUsageKnowsTheLiveLeases(t *testing.T) {
	t.Parallel()
	b := open(t)
	lasting := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	running := func(execution string, used int64, expires time.Time) ledger.Decision {
		d := allow("w", execution, used)
		d.LeaseExpiresAt = &expires
		return d
	}
	recently := time.Now().UTC().Truncate(time.Second)
	over, ended := running("over", 4, lasting), done("w", "tombstone", schemas.OutcomeFailed)
	over.DecidedAt, ended.At = recently, recently
	never := allow("w", "never", 5)
	never.LeaseExpiresAt = nil
	other := running("elsewhere", 1, lasting)
	other.WorkspaceID = "v"
	b.decide(t, running("late", 2, lasting.Add(time.Minute)), running("live", 1, lasting),
		running("expired", 3, time.Now().Add(-time.Second)), over, never, other, stopRunning("w", "unheard", noon))
	b.complete(t, done("w", "over", schemas.OutcomeSucceeded), ended, done("w", "long-ago", schemas.OutcomeFailed))

	got, err := b.Usage(t.Context(), "w", epoch)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.Leases {
		got.Leases[i].ExpiresAt, got.Leases[i].AdmittedAt = got.Leases[i].ExpiresAt.UTC(), got.Leases[i].AdmittedAt.UTC()
	}
	gotOver := map[string]enforcement.Over{}
	for _, o := range got.Over {
		o.AdmittedAt = o.AdmittedAt.UTC()
		gotOver[o.ExecutionID] = o
	}
	got.Over = nil
	wantOver := map[string]enforcement.Over{
		"expired":   {ExecutionID: "expired", UsageEpoch: epoch, AdmittedAt: noon.Add(3 * time.Second)},
		"over":      {ExecutionID: "over", Outcome: schemas.OutcomeSucceeded, UsageEpoch: epoch, AdmittedAt: recently},
		"tombstone": {ExecutionID: "tombstone", Outcome: schemas.OutcomeFailed},
	}
	if diff := cmp.Diff(wantOver, gotOver); diff != "" {
		t.Errorf("what is over (-want +got):\n%s", diff)
	}
	want := enforcement.Usage{Used: 5, Peak: 5, Leases: []enforcement.Lease{
		{ExecutionID: "live", ExpiresAt: lasting, UsageEpoch: epoch, AdmittedAt: noon.Add(time.Second)},
		{ExecutionID: "late", ExpiresAt: lasting.Add(time.Minute), UsageEpoch: epoch, AdmittedAt: noon.Add(2 * time.Second)},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	next, err := b.Usage(t.Context(), "w", "default.2026-12")
	if err != nil || next.Used != 0 || next.Peak != 0 || len(next.Leases) != 2 {
		t.Errorf("usage of a new period is %+v, %v, want nothing used and the two leases", next, err)
	}
	if none, err := b.Usage(t.Context(), "stranger", epoch); err != nil || none.Used != 0 || len(none.Leases) != 0 {
		t.Errorf("usage of a workspace never seen is %+v, %v, want none", none, err)
	}
}

func TestDecisionsTellWhatWasDecided(t *testing.T) {
	t.Parallel()
	b := open(t)
	told := allow("w", "x", 3)
	b.decide(t, told)
	b.complete(t, done("w", "x", schemas.OutcomeFailed))
	records, err := b.Decisions(t.Context(), ledger.Query{Workspace: "w"})
	if err != nil {
		t.Fatal(err)
	}
	want := told.DecisionMade
	value, remaining, concurrent := int64(100), int64(97), int64(5)
	want.LimitValue, want.Remaining, want.ConcurrentLimit = &value, &remaining, &concurrent
	wanted := []ledger.Record{{
		At: told.DecidedAt, Count: 1, Decision: want, Outcome: schemas.OutcomeFailed, CompletedAt: noon.Add(time.Minute),
	}}
	if diff := cmp.Diff(wanted, records, cmp.Comparer(func(a, b schemas.Limit) bool { return a == b })); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestDecisionsArePagedNewestFirst(t *testing.T) {
	t.Parallel()
	b := open(t)
	var ds []ledger.Decision
	var want []string
	for i := range 30 {
		name := fmt.Sprintf("x%02d", i)
		at := noon.Add(time.Duration(i) * time.Minute)
		if i%3 == 0 {
			ds = append(ds, deny("w", name, 9001, at))
		} else {
			d := allow("w", name, 1)
			d.DecidedAt = at
			ds = append(ds, d)
		}
		want = append([]string{name}, want...)
	}
	twin := allow("w", "x13-twin", 1)
	twin.DecidedAt = noon.Add(13 * time.Minute)
	elsewhere := allow("v", "x99", 1)
	b.decide(t, append(ds, twin, elsewhere)...)
	want = append(want[:17], append([]string{"x13-twin"}, want[17:]...)...)

	var got []string
	q := ledger.Query{Workspace: "w", Limit: 7}
	for pages := 0; ; pages++ {
		page, err := b.Decisions(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			got = append(got, r.Decision.ExecutionID)
		}
		q.Before = page[len(page)-1].At
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("executions over all pages (-want +got):\n%s", diff)
	}
	for _, name := range []string{"x12", "x13"} {
		one, err := b.Decisions(t.Context(), ledger.Query{Workspace: "w", Execution: name})
		if err != nil || len(one) != 1 || one[0].Decision.ExecutionID != name {
			t.Errorf("records of execution %s are %+v, %v, want one", name, one, err)
		}
	}
}

func TestTheLedgerKnowsWhenExecutionsWereAdmitted(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.decide(t, allow("w", "a", 1), allow("w", "b", 2), allow("v", "c", 3), stopRunning("w", "unheard", noon))
	b.complete(t, done("w", "b", schemas.OutcomeFailed), done("w", "tombstone", schemas.OutcomeFailed))
	got, err := b.Admitted(t.Context(), "w", []string{"a", "b", "c", "unheard", "tombstone", "stranger"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]time.Time{"a": noon.Add(time.Second), "b": noon.Add(2 * time.Second)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}
	if none, err := b.Admitted(t.Context(), "w", nil); err != nil || len(none) != 0 {
		t.Errorf("of no executions: %v, %v", none, err)
	}
}
