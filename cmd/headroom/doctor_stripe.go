package main

import (
	"context"
	"errors"
	"strings"

	"github.com/headroomhq/headroom/webhooks"
)

func stripeDiagnoses() []diagnosis {
	const service = "stripe"
	return []diagnosis{
		{
			"stripe.reachable", service, "Stripe refuses the API key", "Stripe does not answer; nobody is kept from being decided about",
			"set HEADROOM_STRIPE_API_KEY to a key that may read customers, charges, disputes, events, invoices, subscriptions and Checkout sessions; see https://status.stripe.com",
		},
		{
			"stripe.events", service, "", "events are parked, dead or of nobody known",
			"read why with `headroom stripe events --state parked` (or unmapped, dead), mend the cause, then `headroom stripe replay EVENT`",
		},
		{
			"stripe.lookups", service, "a subscription has waited to be looked up for more than 15 minutes", "for more than a minute",
			"see that `headroom serve` runs and what its log says of look-ups",
		},
		{
			"stripe.waiting", service, "", "subscriptions wait for a person: nobody knows whose they are, or they cannot be understood",
			"list them with `headroom stripe waiting`; say whose they are with `headroom stripe map WORKSPACE CUSTOMER`",
		},
		{
			"stripe.several", service, "", "a workspace has several live subscriptions, and may pay twice",
			"find them with `headroom workspaces show`, and cancel at Stripe what is too many",
		},
	}
}

// stripeChecks are those of an installation that follows Stripe.
func (d *doctor) stripeChecks() []examination {
	if !d.config.followsStripe() {
		return nil
	}
	var checks []examination
	if d.config.StripeAPIKey.Reveal() != "" {
		checks = append(checks, examination{"stripe.reachable", d.reachStripe})
	}
	if d.db == nil {
		return checks
	}
	concerns := func(judge func(webhooks.Concerns) judgement) func(context.Context) judgement {
		return func(ctx context.Context) judgement {
			book, err := webhooks.NewLedger(d.db.pool, webhooks.Mode(d.config.StripeMode))
			if err != nil {
				return unasked(err)
			}
			is, err := book.Concerns(ctx, d.now())
			if err != nil {
				return unread(err)
			}
			return judge(is)
		}
	}
	return append(checks,
		examination{"stripe.events", concerns(judgeEvents)},
		examination{"stripe.lookups", concerns(judgeLookups)},
		examination{"stripe.waiting", concerns(judgeWaiting)},
		examination{"stripe.several", concerns(judgeSeveral)})
}

func (d *doctor) reachStripe(ctx context.Context) judgement {
	api, err := d.config.stripeAPI()
	if err != nil {
		return unasked(err)
	}
	defer api.Close()
	err = api.Reach(ctx)
	switch {
	case errors.Is(err, webhooks.ErrKeyRefused):
		return fails("%s", strings.ReplaceAll(err.Error(), "\n", ": ")).with("error", err.Error())
	case err != nil:
		return warns("Stripe does not answer: %v", err).with("error", err.Error())
	}
	return passes("Stripe answers and takes the key")
}

func judgeEvents(is webhooks.Concerns) judgement {
	j := passes("no event waits for a person")
	if is.Unmapped+is.Parked+is.Dead > 0 {
		j = warns("%d events are unmapped (the oldest for %s), %d parked (%s), %d dead", is.Unmapped, brief(is.OldestUnmapped),
			is.Parked, brief(is.OldestParked), is.Dead)
	}
	return j.with("received", is.Received).with("unmapped", is.Unmapped).with("parked", is.Parked).with("dead", is.Dead).
		with("oldest_unmapped_seconds", is.OldestUnmapped.Seconds()).with("oldest_parked_seconds", is.OldestParked.Seconds())
}

func judgeLookups(is webhooks.Concerns) judgement {
	j, oldest := passes("no look-up waits"), max(is.OldestBacklog, 0) // one that is put off is of the future
	if is.Backlog > 0 {
		j = judged(byAge(oldest, lateLookup, waitFail), "%s waiting, the oldest for %s", counted(int(is.Backlog), "look-up"), brief(oldest))
	}
	return j.with("waiting", is.Backlog).with("oldest_seconds", oldest.Seconds())
}

func judgeWaiting(is webhooks.Concerns) judgement {
	j := passes("no subscription waits for a person")
	if is.UnmappedSubscriptions+is.ParkedSubscriptions+is.DeadSubscriptions > 0 {
		j = warns("%d subscriptions are unmapped, %d parked, %d dead", is.UnmappedSubscriptions, is.ParkedSubscriptions, is.DeadSubscriptions)
	}
	return j.with("unmapped", is.UnmappedSubscriptions).with("parked", is.ParkedSubscriptions).with("dead", is.DeadSubscriptions)
}

func judgeSeveral(is webhooks.Concerns) judgement {
	j := passes("no workspace pays twice")
	if is.Several > 0 {
		j = warns("%s with several live subscriptions", counted(int(is.Several), "workspace"))
	}
	return j.with("workspaces", is.Several).with("disputed", is.Disputed)
}
