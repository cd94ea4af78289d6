package webhooks

import (
	"encoding/json"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

// subscriptionObject is a subscription as Stripe has it at one moment.
type subscriptionObject struct {
	ID         string
	CustomerID string
	Livemode   bool
	// Status may be one that nobody here knows yet.
	Status  string
	Created time.Time
	// TestClock is empty for an object that lives in real time.
	TestClock string
	Metadata  map[string]string
	Items     []subscriptionItem
	// MoreItems means that the object lists some of its items only.
	MoreItems         bool
	CancelAtPeriodEnd bool
	// CancelAt is when it is set to end, EndedAt when it did. CanceledAt is when
	// somebody said so, and means nothing for what it is now.
	CancelAt, CanceledAt, EndedAt *time.Time
	TrialEnd                      *time.Time
	// PauseCollection is how invoices are kept back, empty if they are not. It does
	// not pause the subscription.
	PauseCollection string
	// PausedBecause is the reason of status paused, as Stripe writes it.
	PausedBecause string
	// PendingUpdate means that a change waits for its payment. It is not to be applied.
	PendingUpdate bool
	LatestInvoice string
}

// subscriptionItem is one price of a subscription.
type subscriptionItem struct {
	ID       string
	PriceID  string
	Quantity int64
	// Period is the item's own or, before items had one, the subscription's.
	Period subscriptions.Period
}

// decodeSubscription reads a subscription of any version. An *undecodable error
// names what is missing; a period that is not there is such an error.
func decodeSubscription(raw json.RawMessage) (subscriptionObject, error) {
	o, err := parseObject("subscription", raw)
	if err != nil {
		return subscriptionObject{}, err
	}
	s := subscriptionObject{
		CustomerID: o.id("customer"), TestClock: o.id("test_clock"), Metadata: o.texts("metadata"),
		MoreItems: o.object("items").isTrue("has_more"), CancelAtPeriodEnd: o.isTrue("cancel_at_period_end"),
		CancelAt: o.instant("cancel_at"), CanceledAt: o.instant("canceled_at"), EndedAt: o.instant("ended_at"),
		TrialEnd: o.instant("trial_end"), PauseCollection: o.object("pause_collection").text("behavior"),
		PendingUpdate: o.has("pending_update"), LatestInvoice: o.id("latest_invoice"),
	}
	if paused := o.object("status_details"); paused.has("paused") {
		s.PausedBecause = string(paused.fields["paused"])
	}
	if err := s.need(o); err != nil {
		return subscriptionObject{}, err
	}
	if s.Items, err = subscriptionItems(o); err != nil {
		return subscriptionObject{}, err
	}
	return s, nil
}

// need reads what a subscription cannot be without.
func (s *subscriptionObject) need(o jsonObject) (err error) {
	if s.ID, err = o.ownID(); err != nil {
		return err
	}
	if s.Status, err = o.required("status"); err != nil {
		return err
	}
	created := o.instant("created")
	if created == nil {
		return &undecodable{o.at("created"), missing}
	}
	s.Created = *created
	live, known := o.truth("livemode")
	if !known {
		return &undecodable{o.at("livemode"), missing}
	}
	s.Livemode = live
	return nil
}

func subscriptionItems(o jsonObject) ([]subscriptionItem, error) {
	whole, err := o.period()
	if err != nil {
		return nil, err
	}
	listed, err := o.objects("items")
	if err != nil {
		return nil, err
	}
	if len(listed) == 0 {
		// A subscription that has one plan may say so without a list.
		listed = []jsonObject{o}
	}
	var items []subscriptionItem
	for _, element := range listed {
		if element.isTrue("deleted") {
			continue
		}
		item, err := decodeItem(element, whole)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	if len(items) == 0 {
		return nil, &undecodable{o.at("items"), "are all deleted"}
	}
	return items, nil
}

func decodeItem(o jsonObject, whole *subscriptions.Period) (subscriptionItem, error) {
	own, err := o.period()
	if err != nil {
		return subscriptionItem{}, err
	}
	if own == nil {
		own = whole
	}
	if own == nil {
		return subscriptionItem{}, &undecodable{o.at("current_period_start"), "is missing, and so is the subscription's"}
	}
	item := subscriptionItem{ID: o.text("id"), PriceID: priceOf(o), Quantity: 1, Period: *own}
	// A metered price has none.
	if n, ok := o.number("quantity"); ok && n >= 0 {
		item.Quantity = n
	}
	return item, nil
}

// priceOf is the id of the price that an item or a line is for, as any version has it.
func priceOf(o jsonObject) string {
	for _, id := range []string{
		o.id("price"), o.object("pricing").object("price_details").id("price"), o.id("plan"),
	} {
		if id != "" {
			return id
		}
	}
	return ""
}
