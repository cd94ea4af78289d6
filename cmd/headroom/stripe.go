package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/headroomhq/headroom/webhooks"
)

// stripeCmd is what an operator asks about Stripe's events and subscriptions.
type stripeCmd struct {
	Sync    stripeSyncCmd    `cmd:"" help:"Compare all subscriptions with Stripe's and repair what differs; the first import too."`
	Sweep   stripeSweepCmd   `cmd:"" help:"Record the events of the last 30 days that were never delivered."`
	Replay  stripeReplayCmd  `cmd:"" help:"Look up again what events are about."`
	Events  stripeEventsCmd  `cmd:"" help:"List the events that came, newest first."`
	Waiting stripeWaitingCmd `cmd:"" help:"List the subscriptions that wait for a person."`
	Map     stripeMapCmd     `cmd:"" help:"Say whose a customer or a subscription is."`
}

// errNoKey is the fault of a command that has to ask Stripe.
var errNoKey = errors.New("HEADROOM_STRIPE_API_KEY: is not set: Stripe can be asked for nothing without a key that may read subscriptions, invoices, customers, charges, disputes, Checkout sessions and events")

// withStripe runs work with what follows Stripe. Where a key is needed and missing that
// is said before anything is connected to.
func (p *program) withStripe(ctx context.Context, needsKey bool, work func(*admin, *stripeParts) error) error {
	// Faults of the settings are told of below.
	if config, err := LoadConfig(p.getenv, os.ReadFile); needsKey && err == nil && config.StripeAPIKey.Reveal() == "" {
		return &usageError{Err: errNoKey}
	}
	return p.withAdmin(ctx, func(a *admin) error {
		parts, err := newStripeParts(a.config, a.postgres, a.log)
		if err != nil {
			return err
		}
		defer parts.close()
		return work(a, parts)
	})
}

// busy says what ErrBusy means to a person.
func busy(err error) error {
	if errors.Is(err, webhooks.ErrBusy) {
		return fmt.Errorf("%w: a running `headroom serve`, or somebody else, does the same right now; wait for it, or try again", err)
	}
	return err
}

// stripeSweepCmd sweeps the events once.
type stripeSweepCmd struct{ output }

// Help says what is swept.
func (stripeSweepCmd) Help() string {
	return "`headroom serve` does so every five minutes by itself; this is for a person who wants it now. It goes on from where the last sweep ended, less a quarter of an hour. " +
		"What it records is looked up by a running `headroom serve`. Events of the last two minutes are left to their delivery."
}

// Run sweeps and prints what came of it.
func (c *stripeSweepCmd) Run(ctx context.Context, p *program) error {
	return p.withStripe(ctx, true, func(a *admin, parts *stripeParts) error {
		report, err := parts.sweep.Once(ctx)
		if err != nil && (errors.Is(err, webhooks.ErrBusy) || report.Listed == 0) {
			return busy(err)
		}
		report.Lost = list(report.Lost)
		if c.json() {
			return errors.Join(writeIndented(a.stdout, report), err)
		}
		pairs := [][2]string{
			{"since", instant(report.Since)},
			{"events listed", number(int64(report.Listed))},
			{"left to their delivery", number(int64(report.Young))},
			{"recorded now", number(int64(report.Repairs()))},
		}
		for _, kind := range sortedKeys(report.Repaired) {
			pairs = append(pairs, [2]string{"  " + kind, number(int64(report.Repaired[kind]))})
		}
		for _, world := range report.Lost {
			a.note("Nobody swept %s for longer than Stripe keeps events. A running `headroom serve` compares all subscriptions now; or run `headroom stripe sync`.", world)
		}
		return errors.Join(facts(a.stdout, pairs...), err)
	})
}

// stripeReplayCmd replays events.
type stripeReplayCmd struct {
	Events []string `arg:"" name:"EVENT" help:"Ids of events on record (evt_…)."`
}

// Help says what a replay does.
func (stripeReplayCmd) Help() string {
	return "The stored body only says what to look up: what is written is true now, so that an old event can be replayed at any time. " +
		"A running `headroom serve` does the look-ups. An event with several accounts is replayed for each."
}

// Run replays each event and goes on behind one that fails.
func (c *stripeReplayCmd) Run(ctx context.Context, p *program) error {
	return p.withStripe(ctx, false, func(a *admin, parts *stripeParts) error {
		var faults []error
		for _, id := range c.Events {
			states, err := parts.ledger.Replay(ctx, id, now())
			if err != nil {
				faults = append(faults, err)
				continue
			}
			fmt.Fprintf(a.stdout, "%s  %s\n", id, strings.Join(states, " "))
		}
		return errors.Join(faults...)
	})
}
