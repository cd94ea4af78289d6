package consumers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// follow has a process handle renewals with the whole's own plan cache.
func (w *whole) follow(o *consumers.Options) {
	w.keep(o)
	o.Renewals, o.Plans = w.subscriptions, w.plans
}

// announce publishes the renewal that a row is.
func (w *whole) announce(row subscriptions.Subscription, source string) {
	w.Helper()
	event := schemas.NewEvent(source, uuid.NewString(), time.Now(), schemas.SubscriptionRenewed{
		WorkspaceID: row.WorkspaceID, SubscriptionID: row.ID, PreviousSubscriptionID: row.PreviousID, Kind: row.Kind,
		PlanKey: row.PlanKey, PlanRevision: row.PlanRevision, PeriodStart: row.PeriodStart, PeriodEnd: row.PeriodEnd,
	})
	b, err := schemas.Encode(event)
	if err != nil {
		w.Fatal(err)
	}
	w.publish(w.topology.Renewed(row.WorkspaceID), b)
}

func (w *whole) active(ws string) subscriptions.Workspace {
	w.Helper()
	found, err := w.subscriptions.Workspace(context.Background(), ws)
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// restart gives a workspace a new period by hand.
func (w *whole) restart(ws, plan string) subscriptions.Subscription {
	w.Helper()
	row, err := w.subscriptions.Assign(context.Background(), subscriptions.Assignment{WorkspaceID: ws, PlanKey: plan, NewPeriod: true})
	if err != nil {
		w.Fatal(err)
	}
	return row
}

// bill renews a workspace as another billing service does, which knows the tables
// and nothing else of Headroom: docs/subscriptions.md shows the same.
func (w *whole) bill(ws string) subscriptions.Subscription {
	w.Helper()
	last := *w.active(ws).Subscription
	next := last
	next.ID, next.PreviousID, next.Kind = uuid.NewString(), &last.ID, subscriptions.KindCycle
	next.PeriodStart = time.Now().UTC().Truncate(time.Millisecond)
	next.PeriodEnd = next.PeriodStart.AddDate(0, 1, 0)
	err := pgx.BeginFunc(context.Background(), w.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(context.Background(), `UPDATE subscriptions SET closed_at = $2 WHERE id = $1`, last.ID, next.PeriodStart)
		if err != nil {
			return err
		}
		_, err = tx.Exec(context.Background(), `INSERT INTO subscriptions (id, workspace_id, source, source_id, account, livemode,
				plan_key, plan_revision, snapshot, kind, period_start, period_end, usage_epoch, previous_id)
			SELECT $2::uuid, workspace_id, source, source_id, account, livemode,
				plan_key, plan_revision, snapshot, 'cycle', $3, $4, $2::text, id
			FROM subscriptions WHERE id = $1`, last.ID, next.ID, next.PeriodStart, next.PeriodEnd)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return next
}

// epoch is what Redis knows of a period of a workspace.
func (w *whole) epoch(ws, epoch string) enforcement.Outstanding {
	w.Helper()
	got, err := w.enforcer.Outstanding(context.Background(), ws, epoch)
	if err != nil {
		w.Fatal(err)
	}
	return got
}

// run starts executions that go on running.
func (w *whole) run(ws string, n int) {
	w.Helper()
	for i := range n {
		w.request(ws, fmt.Sprintf("run-%s-%d", ws, i))
	}
	w.settled("requested")
}

func TestARenewalOpensThePeriodWithWhatRuns(t *testing.T) {
	t.Parallel()
	w := newWhole(t, subscriptions.StoreOptions{})
	w.start(w.enforcer, w.follow)
	w.run("narrow", 4)
	w.complete("narrow", "run-narrow-0", schemas.OutcomeSucceeded)
	w.settled("completed")
	row := w.restart("narrow", "pro")
	w.announce(row, "headroom")
	w.settled("renewed")
	want := enforcement.Outstanding{Open: true, Used: 0, Peak: 3, Running: 3}
	if diff := cmp.Diff(want, w.epoch("narrow", row.UsageEpoch)); diff != "" {
		t.Errorf("the new period before its first request (-want +got):\n%s", diff)
	}
	w.request("narrow", "first")
	if d := w.decisions(5)[4]; d.SubscriptionID == nil || *d.SubscriptionID != row.ID || d.Used != 1 || d.Concurrent != 4 {
		t.Errorf("%+v, want it to be the first of the new period, the fourth that runs", d)
	}
}

func TestAnotherBillingServiceCanRenew(t *testing.T) {
	t.Parallel()
	w := newWhole(t, subscriptions.StoreOptions{})
	w.start(w.enforcer, w.follow)
	w.run("limited", 2)
	before := w.active("limited").Revision
	row := w.bill("limited")
	w.announce(row, "billing")
	w.settled("renewed")
	after := w.active("limited")
	if after.Subscription == nil || after.Subscription.ID != row.ID || after.Revision != before+1 {
		t.Fatalf("%+v, want it to point to %s, at revision %d", after, row.ID, before+1)
	}
	want := enforcement.Outstanding{Open: true, Peak: 2, Running: 2}
	if diff := cmp.Diff(want, w.epoch("limited", row.ID)); diff != "" {
		t.Errorf("the new period before its first request (-want +got):\n%s", diff)
	}
	if got := w.invalidations("limited"); len(got) != 2 || got[1] != "renewed by billing: cycle" {
		t.Errorf("told %q, want the assignment and the renewal", got)
	}
}

// invalidations are the reasons in the outbox, in order.
func (w *whole) invalidations(ws string) []string {
	w.Helper()
	rows, err := w.pool.Query(context.Background(), `SELECT body->>'reason' FROM outbox
		WHERE workspace_id = $1 AND subject_kind = 'plan.invalidated' ORDER BY position`, ws)
	if err != nil {
		w.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.Fatal(err)
	}
	return all
}

func TestRenewalsInAnyOrderOpenThePresentPeriodAlone(t *testing.T) {
	t.Parallel()
	w := newWhole(t, subscriptions.StoreOptions{})
	for range 3 {
		w.start(w.enforcer, w.follow)
	}
	w.run("limited", 3)
	var rows []subscriptions.Subscription
	for range 4 {
		rows = append(rows, w.restart("limited", "quota"))
	}
	for i := range 24 {
		w.announce(rows[(7*i+3)%len(rows)], "headroom")
	}
	w.settled("renewed")
	for i, row := range rows {
		got, last := w.epoch("limited", row.UsageEpoch), i == len(rows)-1
		if got.Open != last || last && (got.Used != 0 || got.Peak != 3) {
			t.Errorf("period %d of %d: %+v, want the last alone open, with a peak of 3", i+1, len(rows), got)
		}
	}
}

func TestAKillAtAnyStepOfARenewalLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"pulled", "told", "opened", "settling", "buried", "settled"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWhole(t, subscriptions.StoreOptions{DenyUnknown: true})
			w.hurry()
			r := w.start(w.enforcer, w.keep, crashBatch)
			w.run("limited", 3)
			w.run("narrow", 2)
			w.folded()
			w.halt(r)
			ours, theirs := w.restart("limited", "quota"), w.bill("narrow")
			before := w.active("narrow").Revision
			w.announce(ours, "headroom")
			w.announce(theirs, "billing")
			w.publish(w.topology.Renewed("narrow"), []byte("nonsense"))
			w.crash("renewed", step, 1)

			r = w.start(w.enforcer, w.follow, crashBatch)
			w.settled("renewed")
			w.halt(r)
			if got, want := w.epoch("limited", ours.UsageEpoch), (enforcement.Outstanding{Open: true, Peak: 3, Running: 3}); got != want {
				t.Errorf("our period is %+v, want %+v", got, want)
			}
			if got, want := w.epoch("narrow", theirs.ID), (enforcement.Outstanding{Open: true, Peak: 2, Running: 2}); got != want {
				t.Errorf("their period is %+v, want %+v", got, want)
			}
			after := w.active("narrow")
			if after.Subscription == nil || after.Subscription.ID != theirs.ID {
				t.Errorf("%+v, want it to point to %s", after, theirs.ID)
			}
			if rise := after.Revision - before; rise < 1 || rise > 2 || int(rise) != len(w.invalidations("narrow"))-1 {
				t.Errorf("the revision rose by %d, told %q: want once, or twice for the kill, and all told", rise, w.invalidations("narrow"))
			}
			if n := w.count(schemas.StreamDeadLetters); n != 1 {
				t.Errorf("%d dead letters, want one", n)
			}
		})
	}
}
