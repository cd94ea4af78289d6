package webhooks_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

func (sh *shop) ask(sub stripetest.Subscription) {
	sh.Helper()
	_, err := sh.ledger.Ask(context.Background(), webhooks.SyncKey{
		Account: sub.Account, Livemode: sub.Livemode, SubscriptionID: sub.ID,
	}, "sync", time.Now())
	sh.ok(err)
}

// compare holds all rows against the oracle, and the pointer and the news against the
// rows.
func (sh *shop) compare() {
	sh.Helper()
	var live []candidate
	for _, sub := range sh.Subscriptions() {
		truth, err := sh.Truth(sub.ID, rankOf)
		sh.ok(err)
		rows := sh.rows(sub.ID)
		for _, fault := range faults(truth, rows) {
			sh.Errorf("%s: %s\nrows %+v\ntruth %+v", sub.ID, fault, rows, truth)
		}
		if len(rows) > 0 && counts(rows[len(rows)-1]) {
			live = append(live, candidate{rows[len(rows)-1], sub.Created, sub.ID})
		}
	}
	sh.comparePointer(live)
}

type candidate struct {
	row
	created time.Time
	sub     string
}

func counts(r row) bool {
	return r.Closed == nil && slices.Contains([]string{"active", "trialing", "past_due"}, r.Status)
}

// comparePointer expects the workspace on the best of the live rows, and to be told so.
func (sh *shop) comparePointer(live []candidate) {
	sh.Helper()
	want := ""
	if len(live) > 0 {
		best := slices.MaxFunc(live, func(a, b candidate) int {
			if ra, rb := planRank(a.Plan), planRank(b.Plan); ra != rb {
				return ra - rb
			}
			return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.sub, b.sub))
		})
		want = best.ID
	}
	got := query[string](sh, sh.pool, `SELECT coalesce(max(active_subscription_id::text), '') FROM workspaces WHERE id = $1`, sh.workspace)
	if got != want {
		sh.Errorf("the workspace is on %q, want %q of %+v", got, want, live)
	}
	told := sh.told(sh.workspace)
	if want != "" && !slices.ContainsFunc(told, func(n news) bool { return n.Row == want && n.Kind != "ended" }) {
		sh.Errorf("nothing was told of %s: %+v", want, told)
	}
	// Who hears the news knows what counts: the last of them is about it, or an end.
	if n := len(told); n > 0 && want != "" && told[n-1].Row != want {
		sh.Errorf("the last news are %+v, the workspace is on %s", told[n-1], want)
	}
}

func planRank(plan string) int { return map[string]int{"basic": 1, "pro": 2, "max": 3}[plan] }

// faults compares a subscription's rows with its truth: the current one exactly, those
// before it as a part of what was.
func faults(truth stripetest.Truth, rows []row) []string {
	now := truth.Subscription
	over := !now.EndedAt.IsZero()
	last := truth.Periods[len(truth.Periods)-1]
	if len(rows) == 0 {
		if over || now.Status == stripetest.Unpaid || now.Status == stripetest.Paused {
			return nil // it was first heard of when it gave nothing any more
		}
		return []string{"there are no rows"}
	}
	var found []string
	expect := func(what string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			found = append(found, fmt.Sprintf("%s is %v, want %v", what, got, want))
		}
	}
	for i, r := range rows {
		if !slices.ContainsFunc(truth.Periods, func(p stripetest.Period) bool { return p.Start.Equal(r.Start) }) {
			found = append(found, fmt.Sprintf("no period began %s", r.Start))
		}
		if i < len(rows)-1 && (r.Closed == nil || !r.Closed.Equal(rows[i+1].Start)) {
			found = append(found, fmt.Sprintf("row %d is closed %v, the next begins %s", i, r.Closed, rows[i+1].Start))
		}
	}
	current := rows[len(rows)-1]
	expect("status", current.Status, now.Status)
	if over {
		expect("end", deref(current.Ended), now.EndedAt)
		return found
	}
	expect("start", current.Start, last.Start)
	expect("period end", current.End, last.End)
	expect("closed", current.Closed == nil, true)
	if plan := planOf(last.Plan.Price.ID); plan != "" {
		expect("plan", current.Plan, plan)
		expect("quantity", current.Quantity, last.Plan.Quantity)
		expect("payment", current.Payment, paymentOf(last.Payment))
	}
	expect("set to end", deref(current.CancelAt), now.CancelAt)
	return found
}

func paymentOf(truth string) string {
	if truth == stripetest.PeriodVoid {
		return "none"
	}
	return truth
}

func deref(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}
