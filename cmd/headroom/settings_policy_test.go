package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/subscriptions"
)

func TestTheSettingsAreThePolicyOfEveryStore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set  map[string]string
		want subscriptions.Policy
	}{
		"none set is what a policy defaults to": {nil, subscriptions.Policy{
			PastDueGrace: subscriptions.DefaultPastDueGrace, OverdueGrace: subscriptions.DefaultOverdueGrace,
		}},
		"each set": {map[string]string{
			"HEADROOM_PAST_DUE_GRACE": "3d", "HEADROOM_OVERDUE_GRACE": "1h", "HEADROOM_UNPAID_PERIOD": "hold",
			"HEADROOM_ANCHOR_RESET_USAGE": "reset", "HEADROOM_PLAN_CHANGE_USAGE": "reset", "HEADROOM_STRIPE_ON_DISPUTE": "hold",
		}, subscriptions.Policy{
			PastDueGrace: 72 * time.Hour, OverdueGrace: time.Hour, HoldUnpaid: true, HoldDisputed: true, ResetOnAnchorReset: true, ResetOnPlanChange: true,
		}},
		"one reset leaves the other": {map[string]string{"HEADROOM_PLAN_CHANGE_USAGE": "reset"}, subscriptions.Policy{
			PastDueGrace: subscriptions.DefaultPastDueGrace, OverdueGrace: subscriptions.DefaultOverdueGrace, ResetOnPlanChange: true,
		}},
		"no grace is none, not the default": {map[string]string{
			"HEADROOM_PAST_DUE_GRACE": "0s", "HEADROOM_OVERDUE_GRACE": "0d",
		}, subscriptions.Policy{PastDueGrace: -1, OverdueGrace: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := LoadConfig(environ(test.set), noFiles)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, config.storeOptions().Policy); diff != "" {
				t.Errorf("policy differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlansShowTellsThePoliciesInForce(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	i.must("plans", "apply", catalogFile(t, "rank: 10\n", "rank: 10\n    quota_interval: month\n"))
	strict := i.with(map[string]string{"HEADROOM_PAST_DUE_GRACE": "7d", "HEADROOM_UNPAID_PERIOD": "hold"})
	var shown []planShown
	strict.mustJSON(&shown, "plans", "show", "pro")
	want := policiesView{
		PastDueGrace: "7d", OverdueGrace: "3d", UnpaidPeriod: "hold",
		AnchorResetUsage: "carry", PlanChangeUsage: "carry", StripeOnDispute: "none", UnknownWorkspace: "default",
	}
	if len(shown) != 2 || shown[1].Policies != nil || shown[0].QuotaInterval != "month" || shown[1].QuotaInterval != "" {
		t.Fatalf("show is %+v, want two revisions, the policies with the newest", shown)
	}
	if diff := cmp.Diff(&want, shown[0].Policies); diff != "" {
		t.Errorf("policies differ (-want +got):\n%s", diff)
	}
	text := strict.must("plans", "show", "pro")
	for name, line := range map[string][]string{"the grace": {"policy past due grace", "7d"}, "the quota interval": {"quota interval", "month"}} {
		if !hasLine(text, line...) {
			t.Errorf("show does not tell %s:\n%s", name, text)
		}
	}
}
