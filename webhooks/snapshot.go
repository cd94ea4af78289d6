package webhooks

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

// errOtherMode means that an object is of the world that is not listened to.
var errOtherMode = errors.New("the subscription is of the other mode")

// pricedPlan is a plan that a price stands for.
type pricedPlan struct {
	Key  string
	Rank int32
}

// priceLookup finds the plan of a price, false if no plan has it.
type priceLookup func(price string) (pricedPlan, bool)

// pricesOf looks prices up in a catalog. A plan that left it has none: who is on it
// keeps it as the last plan, and nobody new comes to it.
func pricesOf(catalog []subscriptions.PlanRevision) priceLookup {
	plans := make(map[string]pricedPlan)
	for _, plan := range catalog {
		if plan.Removed {
			continue
		}
		for _, price := range plan.StripePrices {
			plans[price] = pricedPlan{Key: plan.Key, Rank: plan.Rank}
		}
	}
	return func(price string) (pricedPlan, bool) {
		plan, found := plans[price]
		return plan, found
	}
}

// sighting is a subscription as Stripe has it, and what is needed to say in this
// project's own words what it means.
type sighting struct {
	Account      string
	Subscription subscriptionObject
	// Invoices are those that are known of it, in any order.
	Invoices []invoiceObject
	// Claims are the refunds and disputes that are known of it.
	Claims claims
	Plans  priceLookup
	Mode   Mode
}

// sourceSnapshot is what a sighting means.
type sourceSnapshot struct {
	// State lacks the workspace. Its plan is empty if none of the prices is known.
	State subscriptions.SourceState
	// Prices are all of its prices. That the plan is unresolved means that none of them is
	// in the catalog.
	Prices []string
	// UnknownStatus is a status that this version does not know, else empty.
	UnknownStatus string
}

// snapshotOf says what a sighting means. The period is the plan item's: the item
// whose price is in the catalog, of several the one of the highest rank. It does
// not depend on the order of items or invoices. The error is errOtherMode.
func snapshotOf(s sighting) (sourceSnapshot, error) {
	o := s.Subscription
	if !s.Mode.accepts(o.Livemode) {
		return sourceSnapshot{}, fmt.Errorf("subscription %s: %w: %s", o.ID, errOtherMode, otherMode(o.Livemode, s.Mode))
	}
	item, plan, resolved := planItem(o.Items, s.Plans)
	snapshot := sourceSnapshot{
		State: subscriptions.SourceState{
			Key:     subscriptions.SubscriptionKey{Source: subscriptions.SourceStripe, Account: s.Account, Livemode: o.Livemode, SourceID: o.ID},
			Status:  o.Status,
			PlanKey: plan.Key, Quantity: int32(min(item.Quantity, math.MaxInt32)),
			Period: item.Period, CancelAt: o.cancelAt(item.Period), EndedAt: o.EndedAt,
		},
	}
	for _, i := range o.Items {
		snapshot.Prices = append(snapshot.Prices, i.PriceID)
	}
	slices.Sort(snapshot.Prices)
	if !knownStatus(o.Status) {
		snapshot.UnknownStatus = o.Status
	}
	snapshot.State.SourceFacts = subscriptions.SourceFacts{
		SourceCreated: o.Created, TestClock: o.TestClock != "", PlanUnresolved: !resolved,
	}
	billed := billedPeriod{
		subscriptionID: o.ID, period: item.Period, item: item, unresolved: !resolved,
		pastDue: o.Status == subscriptions.StatusPastDue || o.Status == subscriptions.StatusUnpaid,
		endedAt: o.EndedAt,
	}
	snapshot.State.PaymentState = paymentState(billed, s.Invoices)
	snapshot.State.Disputed = s.Claims.dispute(billed, s.Invoices)
	return snapshot, nil
}

// planItem chooses the item that says what the workspace is on. Without a known
// price it is the item that began last, so that the period goes on.
func planItem(items []subscriptionItem, plans priceLookup) (subscriptionItem, pricedPlan, bool) {
	type candidate struct {
		item  subscriptionItem
		plan  pricedPlan
		known bool
	}
	candidates := make([]candidate, 0, len(items))
	for _, item := range items {
		plan, known := plans(item.PriceID)
		candidates = append(candidates, candidate{item, plan, known})
	}
	best := slices.MaxFunc(candidates, func(a, b candidate) int {
		if a.known != b.known {
			return cmp.Compare(truth(a.known), truth(b.known))
		}
		return cmp.Or(cmp.Compare(a.plan.Rank, b.plan.Rank),
			a.item.Period.Start.Compare(b.item.Period.Start), cmp.Compare(a.item.ID, b.item.ID))
	})
	return best.item, best.plan, best.known
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// cancelAt is when a subscription that runs is set to end, nil if it is not. Old
// and new ways of saying so differ in the boolean.
func (s subscriptionObject) cancelAt(period subscriptions.Period) *time.Time {
	switch {
	case s.EndedAt != nil:
		return nil
	case s.CancelAt != nil:
		return s.CancelAt
	case s.CancelAtPeriodEnd:
		return &period.End
	default:
		return nil
	}
}

func knownStatus(status string) bool {
	return slices.Contains([]string{
		subscriptions.StatusTrialing, subscriptions.StatusActive, subscriptions.StatusPastDue,
		subscriptions.StatusIncomplete, subscriptions.StatusUnpaid, subscriptions.StatusPaused,
		subscriptions.StatusCanceled, subscriptions.StatusIncompleteExpired,
	}, status)
}
