package main

import (
	"strconv"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

// policy is the settings as the transitions take them.
func (c Config) policy() subscriptions.Policy {
	return subscriptions.Policy{
		ResetOnAnchorReset: c.AnchorResetUsage == usageReset,
		ResetOnPlanChange:  c.PlanChangeUsage == usageReset,
		HoldUnpaid:         c.UnpaidPeriod == unpaidHold,
		HoldDisputed:       c.StripeOnDispute == disputeHold,
		PastDueGrace:       graceOf(c.PastDueGrace),
		OverdueGrace:       graceOf(c.OverdueGrace),
	}
}

// graceOf is a grace as Policy takes it: there, 0 stands for the default and
// below it for none.
func graceOf(setting time.Duration) time.Duration {
	if setting == 0 {
		return -1
	}
	return setting
}

// policiesView is the policies in force.
type policiesView struct {
	PastDueGrace     string `json:"past_due_grace"`
	OverdueGrace     string `json:"overdue_grace"`
	UnpaidPeriod     string `json:"unpaid_period"`
	AnchorResetUsage string `json:"anchor_reset_usage"`
	PlanChangeUsage  string `json:"plan_change_usage"`
	StripeOnDispute  string `json:"stripe_on_dispute"`
	UnknownWorkspace string `json:"unknown_workspace"`
}

func (c Config) policies() policiesView {
	return policiesView{
		PastDueGrace: daysText(c.PastDueGrace), OverdueGrace: daysText(c.OverdueGrace), UnpaidPeriod: c.UnpaidPeriod,
		AnchorResetUsage: c.AnchorResetUsage, PlanChangeUsage: c.PlanChangeUsage,
		StripeOnDispute: c.StripeOnDispute, UnknownWorkspace: c.UnknownWorkspace,
	}
}

// daysText is a duration as the settings take it, in days where it is whole ones.
func daysText(d time.Duration) string {
	const day = 24 * time.Hour
	if d > 0 && d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return d.String()
}

func (v policiesView) pairs() [][2]string {
	return [][2]string{
		{"policy past due grace", v.PastDueGrace},
		{"policy overdue grace", v.OverdueGrace},
		{"policy unpaid period", v.UnpaidPeriod},
		{"policy anchor reset usage", v.AnchorResetUsage},
		{"policy plan change usage", v.PlanChangeUsage},
		{"policy stripe on dispute", v.StripeOnDispute},
		{"policy unknown workspace", v.UnknownWorkspace},
	}
}
