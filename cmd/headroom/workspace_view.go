package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// rowPairs is a row of a subscription as a person reads it.
func rowPairs(r *api.SubscriptionRow) [][2]string {
	pairs := [][2]string{
		{"workspace", r.WorkspaceID},
		{"plan", fmt.Sprintf("%s (revision %d)", r.PlanKey, r.PlanRevision)},
		{"subscription", r.ID},
		{"source", r.Source},
		{"status", r.Status},
		{"period", instant(r.PeriodStart) + " to " + instant(r.PeriodEnd) + " (" + r.Kind + ")"},
	}
	pairs = append(pairs, ahead(r)...)
	return append(pairs, [2]string{"interval", dash(r.Interval)}, [2]string{"usage epoch", r.UsageEpoch})
}

// ahead is what the status and the period do not tell of what follows, without
// what does not apply.
func ahead(r *api.SubscriptionRow) [][2]string {
	var pairs [][2]string
	if !r.BillingStart.Equal(r.PeriodStart) || !r.BillingEnd.Equal(r.PeriodEnd) {
		pairs = append(pairs, [2]string{"billing period", instant(r.BillingStart) + " to " + instant(r.BillingEnd)})
	}
	if r.Status == subscriptions.StatusTrialing && r.AfterTrial != "" {
		pairs = append(pairs, [2]string{"after trial", r.AfterTrial})
	}
	for _, at := range []struct {
		name string
		at   *time.Time
	}{{"ends at", r.CancelAt}, {"unpaid since", r.UnpaidSince}, {"overdue since", r.OverdueSince}} {
		if at.at != nil {
			pairs = append(pairs, [2]string{at.name, instant(*at.at)})
		}
	}
	if r.PlanUnresolved {
		pairs = append(pairs, [2]string{"unresolved", "none of its prices is in the catalog; the last plan stays"})
	}
	if r.Disputed {
		pairs = append(pairs, [2]string{"disputed", "its money is withdrawn"})
	}
	return pairs
}

// printWorkspace writes the view as a person reads it: what holds, then a line a limit.
func printWorkspace(p *program, v api.WorkspaceView) error {
	if err := facts(p.stdout, workspacePairs(v)...); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout)
	t := newTable("LIMIT", "VALUE", "FROM", "USED")
	for _, name := range schemas.LimitNames {
		used := ""
		if name == schemas.LimitStorageMB {
			used = megabytesText(v.Usage.StorageMB)
		}
		t.add(name, schemas.LimitFrom(v.Limits[name].Value).String(), v.Limits[name].From, used)
	}
	for _, name := range sortedKeys(v.Features) {
		t.add(featureCells(name, v.Features[name])...)
	}
	if err := t.write(p.stdout, "no limits"); err != nil {
		return err
	}
	if len(v.Overrides) > 0 {
		fmt.Fprintln(p.stdout)
		if err := overrideTable(v.Overrides).write(p.stdout, ""); err != nil {
			return err
		}
	}
	return printHistory(p.stdout, v.Subscriptions)
}

func workspacePairs(v api.WorkspaceView) [][2]string {
	pairs := [][2]string{{"workspace", v.WorkspaceID}, {"plan", fmt.Sprintf("%s (revision %d)", v.PlanKey, v.PlanRevision)}}
	if s := v.Subscription; s != nil {
		pairs = append(pairs, [2]string{"subscription", fmt.Sprintf("%s (%s, %s)", s.ID, s.Source, s.Status)})
	} else {
		pairs = append(pairs, [2]string{"subscription", "none, on the default plan"})
	}
	if v.Pinned != nil {
		pairs = append(pairs, [2]string{"pinned", v.Pinned.Source + " " + v.Pinned.SourceID})
	}
	pairs = append(pairs, [2]string{"period", periodText(v)})
	if v.Subscription != nil {
		pairs = append(pairs, ahead(v.Subscription)...)
	}
	pairs = append(pairs,
		[2]string{"quota lasts", quotaText(v.QuotaInterval)},
		[2]string{"executions", usageText(v.Usage.Executions, v.Ledger.Executions)},
		[2]string{"running", usageText(v.Usage.Concurrent, v.Ledger.Concurrent)},
		[2]string{"peak", usageText(v.Usage.Peak, v.Ledger.Peak)})
	for _, over := range v.OverLimit {
		pairs = append(pairs, [2]string{"over limit", fmt.Sprintf("%s: %d of %d", over.Limit, over.Used, over.Value)})
	}
	return pairs
}

// featureCells is a feature's line: what may be had, from where, and what is.
func featureCells(name string, f api.FeatureView) []string {
	kind := subscriptions.FeatureKind(f.Kind)
	used := ""
	if kind != subscriptions.FeatureBoolean {
		used = number(f.Used)
	}
	if f.Locked > 0 {
		used += fmt.Sprintf(" (%d locked)", f.Locked)
	}
	return []string{"feature " + name, featureText(kind, schemas.LimitFrom(f.Limit), f.Included), f.From, used}
}

func megabytesText(n float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", n), "0"), ".")
}

// periodText is the period that decisions are measured against. One on a test clock is
// shown as it is there; decisions have it reach to today.
func periodText(v api.WorkspaceView) string {
	if s := v.Subscription; s != nil && s.TestClock {
		return instant(s.PeriodStart) + " to " + instant(s.PeriodEnd) + " (on a test clock)"
	}
	return instant(v.PeriodStart) + " to " + instant(v.PeriodEnd)
}

func quotaText(interval string) string {
	if interval == "" {
		return "as long as the period"
	}
	return "a " + interval
}

func usageText(counted, folded int64) string {
	return fmt.Sprintf("%d (ledger %d)", counted, folded)
}
