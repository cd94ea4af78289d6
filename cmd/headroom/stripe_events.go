package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/headroomhq/headroom/webhooks"
)

// eventsPage is how many events are read at once.
const eventsPage = 1000

// stripeEventsCmd lists events.
type stripeEventsCmd struct {
	State string `placeholder:"S" help:"Only those in this state: received, done, ignored, unmapped, parked or dead."`
	Limit int    `default:"100" placeholder:"N" help:"How many at most; ${default} unless given."`
	All   bool   `help:"All of them, however many."`
	output
}

// Help says what the states mean.
func (stripeEventsCmd) Help() string {
	return "received: its look-up is under way. done: the rows are as Stripe has the subscription. ignored: nothing follows from it. " +
		"unmapped: it is not known whose it is; see `headroom stripe map`. parked: it cannot be understood, the reason says why. " +
		"dead: it was tried and given up. The last two wait for a person, and for `headroom stripe replay`."
}

// Run prints the events.
func (c *stripeEventsCmd) Run(ctx context.Context, p *program) error {
	states := webhooks.States()
	switch {
	case c.Limit < 1:
		return &usageError{Err: fmt.Errorf("--limit %d: must be at least 1", c.Limit)}
	case c.State != "" && !slices.Contains(states, c.State):
		return &usageError{Err: fmt.Errorf("--state %q: must be one of %s", c.State, strings.Join(states, ", "))}
	}
	return p.withStripe(ctx, false, func(a *admin, parts *stripeParts) error {
		events, err := c.read(ctx, parts.ledger)
		if err != nil {
			return err
		}
		if c.json() {
			return writeIndented(a.stdout, list(events))
		}
		t := newTable("EVENT", "TYPE", "CREATED", "STATE", "WORKSPACE", "ABOUT", "TIMES", "REASON")
		for _, e := range events {
			t.add(eventCells(e)...)
		}
		if err := t.write(a.stdout, "no events"); err != nil {
			return err
		}
		if !c.All && len(events) == c.Limit {
			a.note("There may be more: add --all, or another --limit.")
		}
		return nil
	})
}

func (c *stripeEventsCmd) read(ctx context.Context, ledger *webhooks.Ledger) ([]webhooks.Event, error) {
	var all []webhooks.Event
	filter := webhooks.EventFilter{State: c.State}
	for {
		filter.Limit = eventsPage
		if !c.All {
			filter.Limit = min(eventsPage, c.Limit-len(all))
		}
		page, err := ledger.Events(ctx, filter)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < filter.Limit || !c.All && len(all) >= c.Limit {
			return all, nil
		}
		filter.Before = page[len(page)-1].Row
	}
}

func eventCells(e webhooks.Event) []string {
	created, workspace := "-", "-"
	if e.Created != nil {
		created = instant(*e.Created)
	}
	if e.WorkspaceID != nil {
		workspace = *e.WorkspaceID
	}
	return []string{e.ID, dash(e.Type), created, e.State, workspace, dash(e.SourceID), strconv.Itoa(e.Deliveries), dash(e.Reason)}
}

// stripeWaitingCmd lists subscriptions that wait for a person.
type stripeWaitingCmd struct {
	Limit int `default:"100" placeholder:"N" help:"How many at most; ${default} unless given."`
	output
}

// Run prints them.
func (c *stripeWaitingCmd) Run(ctx context.Context, p *program) error {
	if c.Limit < 1 {
		return &usageError{Err: fmt.Errorf("--limit %d: must be at least 1", c.Limit)}
	}
	return p.withStripe(ctx, false, func(a *admin, parts *stripeParts) error {
		waiting, err := parts.ledger.Waiting(ctx, c.Limit)
		if err != nil {
			return err
		}
		if c.json() {
			return writeIndented(a.stdout, list(waiting))
		}
		return waitingTable(waiting).write(a.stdout, "no subscription waits for a person")
	})
}

func waitingTable(waiting []webhooks.WaitingSubscription) *table {
	t := newTable("SUBSCRIPTION", "CUSTOMER", "ACCOUNT", "STATE", "REASON")
	for _, w := range waiting {
		t.add(w.SubscriptionID, dash(w.CustomerID), dash(w.Account), w.Outcome, w.Reason)
	}
	return t
}

// stripeMapCmd maps a customer or a subscription.
type stripeMapCmd struct {
	Workspace string `arg:"" name:"WORKSPACE" help:"The workspace; it need not be known."`
	ID        string `arg:"" name:"CUSTOMER-or-SUBSCRIPTION" help:"A customer (cus_…), who may pay for it from now on, or one subscription (sub_…)."`
	Account   string `placeholder:"ACCT" help:"The connected account that it is of, where that is not known yet."`
	Test      bool   `help:"It is of test mode, where that is not known yet and HEADROOM_STRIPE_MODE is any."`
}

// Help says what a mapping changes.
func (stripeMapCmd) Help() string {
	return "What waited for it is looked up at once by a running `headroom serve`. A customer that was mapped before is mapped anew, for subscriptions to come. " +
		"A subscription that has a workspace keeps it for good."
}

// Run maps, and prints what that set going.
func (c *stripeMapCmd) Run(ctx context.Context, p *program) error {
	if err := checkID("workspace", c.Workspace); err != nil {
		return err
	}
	m := webhooks.Mapping{WorkspaceID: c.Workspace, Account: c.Account, Cause: "headroom stripe map"}
	switch {
	case strings.HasPrefix(c.ID, "cus_"):
		m.CustomerID = c.ID
	case strings.HasPrefix(c.ID, "sub_"):
		m.SubscriptionID = c.ID
	default:
		return &usageError{Err: fmt.Errorf("%q: must be a customer (cus_…) or a subscription (sub_…)", c.ID)}
	}
	return p.withStripe(ctx, false, func(a *admin, parts *stripeParts) error {
		m.Livemode = a.config.StripeMode != string(webhooks.ModeTest) && !c.Test
		if err := c.place(ctx, a, parts.ledger, &m); err != nil {
			return err
		}
		asked, err := parts.ledger.Map(ctx, m, now())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s belongs to workspace %s; %s asked for\n", c.ID, c.Workspace, counted(int(asked), "look-up"))
		return err
	})
}

// place finds out of which account and mode it is.
func (c *stripeMapCmd) place(ctx context.Context, a *admin, ledger *webhooks.Ledger, m *webhooks.Mapping) error {
	places, err := ledger.Places(ctx, c.ID)
	if err != nil {
		return err
	}
	if c.Account != "" {
		places = slices.DeleteFunc(places, func(is webhooks.Mapping) bool { return is.Account != c.Account })
	}
	switch len(places) {
	case 0:
		a.note("%s was not heard of yet: it is mapped for when it is.", c.ID)
	case 1:
		m.Account, m.Livemode = places[0].Account, places[0].Livemode
	default:
		if !slices.ContainsFunc(places, func(is webhooks.Mapping) bool { return is.Account == m.Account && is.Livemode == m.Livemode }) {
			return &usageError{Err: fmt.Errorf("%s is known in several accounts: say which with --account", c.ID)}
		}
	}
	return nil
}
