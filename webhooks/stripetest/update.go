package stripetest

import (
	"slices"
	"time"
)

// Proration decides how a change inside a period is billed.
type Proration string

// The proration behaviours.
const (
	// CreateProrations puts them on the next invoice.
	CreateProrations Proration = "create_prorations"
	AlwaysInvoice    Proration = "always_invoice"
	NoProration      Proration = "none"
)

// ItemChange changes, adds or removes one item.
type ItemChange struct {
	// ID is the item, empty for a new one.
	ID string
	// Price and Quantity stay if not given; a new item has quantity 1.
	Price    string
	Quantity int64
	Remove   bool
}

// UpdateParams describe a change; what is not given stays.
type UpdateParams struct {
	// Price and Quantity are a short form for the first item.
	Price    string
	Quantity int64
	Items    []ItemChange
	// AnchorNow is billing_cycle_anchor=now: a new period begins.
	AnchorNow bool
	// EndTrial is trial_end=now.
	EndTrial bool
	// Proration is CreateProrations, PaymentBehavior AllowIncomplete if not given.
	Proration       Proration
	PaymentBehavior PaymentBehavior
	// CancelAtPeriodEnd sets or clears the scheduled end. CancelAt sets one at a point
	// in time, as the portal does in flexible mode; the zero time clears it.
	CancelAtPeriodEnd *bool
	CancelAt          *time.Time
	// PauseCollection stops collecting, ResumeCollection ends that.
	PauseCollection  *PauseCollection
	ResumeCollection bool
	// Metadata sets values; an empty one is taken out.
	Metadata map[string]string
}

// changing is an update under way: the subscription as it was and as it will be.
type changing struct {
	was, will *Subscription
	p         UpdateParams
	now       time.Time
	lines     []Line
	// bills is whether an invoice is due at once.
	bills bool
}

// Update changes a subscription. It fails, and changes nothing, for an ended or unknown
// one, for items that do not go together, and with ErrorIfIncomplete or
// PendingIfIncomplete as those say.
func (s *Stripe) Update(id string, p UpdateParams) (Subscription, error) {
	s.enter()
	defer s.leave()
	sub, err := s.live(id)
	if err != nil {
		return Subscription{}, err
	}
	c := &changing{was: sub, will: sub.clone(), p: p, now: s.now(sub)}
	if err := s.plan(c); err != nil {
		return Subscription{}, err
	}
	if err := s.carryOut(c); err != nil {
		return Subscription{}, err
	}
	return *sub.clone(), nil
}

// plan works out the subscription as it will be, and what is to be billed.
func (s *Stripe) plan(c *changing) error {
	c.p.Proration = orElse(c.p.Proration, CreateProrations)
	if err := c.allowed(); err != nil {
		return err
	}
	if err := s.planItems(c); err != nil {
		return err
	}
	if err := c.will.fits(); err != nil {
		return err
	}
	c.planCycle()
	c.planEnd()
	if c.p.PauseCollection != nil {
		pause := *c.p.PauseCollection
		c.will.PauseCollection = &pause
	}
	if c.p.ResumeCollection {
		c.will.PauseCollection = nil
	}
	if len(c.p.Metadata) > 0 {
		c.will.Metadata = merged(c.will.Metadata, c.p.Metadata)
	}
	return nil
}

// allowed is an error for parameters that Stripe does not take.
func (c *changing) allowed() error {
	other := c.p.EndTrial || c.p.CancelAtPeriodEnd != nil || c.p.CancelAt != nil || c.p.PauseCollection != nil ||
		c.p.ResumeCollection || len(c.p.Metadata) > 0
	switch {
	case other && c.p.PaymentBehavior == PendingIfIncomplete:
		return refused("payment_behavior", "`pending_if_incomplete` is only supported for changes of items and of the anchor.")
	case c.p.CancelAt != nil && !c.p.CancelAt.IsZero() && c.p.CancelAt.Before(c.now):
		return refused("cancel_at", "The timestamp must be in the future.")
	}
	return nil
}

func (s *Stripe) planItems(c *changing) error {
	changes := c.p.Items
	if c.p.Price != "" || c.p.Quantity != 0 {
		first := ItemChange{ID: c.will.Items[0].ID, Price: c.p.Price, Quantity: c.p.Quantity}
		changes = append([]ItemChange{first}, changes...)
	}
	for _, change := range changes {
		if err := s.planItem(c, change); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stripe) planItem(c *changing, change ItemChange) error {
	at := len(c.will.Items)
	if change.ID == "" {
		c.will.Items = append(c.will.Items, Item{ID: s.ids.make("si"), Quantity: 1, Created: c.now})
	} else if at = c.will.item(change.ID); at < 0 {
		return missing("subscription_item", change.ID)
	}
	if change.Remove {
		c.will.Items = slices.Delete(c.will.Items, at, at+1)
		return nil
	}
	item := &c.will.Items[at]
	item.Quantity = orElse(change.Quantity, item.Quantity)
	if change.Price != "" || change.ID == "" {
		price, ok := s.prices[change.Price]
		if !ok {
			return missing("price", change.Price)
		}
		item.Price = *price
	}
	return nil
}

// planCycle decides what the change does to the periods.
func (c *changing) planCycle() {
	trialing, paused := c.was.Status == Trialing, c.was.Status == Paused
	restart := c.p.AnchorNow
	for _, item := range c.will.Items {
		old := c.was.item(item.ID)
		other := old >= 0 && !sameInterval(item.Price, c.was.Items[old].Price)
		restart = restart || other && c.was.BillingMode == Classic
	}
	switch {
	case c.p.EndTrial && trialing:
		c.will.Status, c.will.TrialEnd = Active, c.now
		c.will.restart(c.now, KindTrialEnd)
		c.lines, c.bills = chargesOf(c.will), true
	case restart && !trialing && !paused:
		c.will.restart(c.now, KindAnchorReset)
		if c.p.Proration != NoProration {
			for _, item := range c.was.Items {
				c.lines = append(c.lines, credit(c.was, item, c.now))
			}
		}
		c.lines, c.bills = append(c.lines, chargesOf(c.will)...), true
	default:
		c.planInPlace()
	}
}

// planInPlace leaves the periods where they began. The end moves with the interval.
func (c *changing) planInPlace() {
	var charges []Line
	for at := range c.will.Items {
		item := &c.will.Items[at]
		old := c.was.item(item.ID)
		switch {
		case old < 0:
			c.place(item)
		case sameInterval(item.Price, c.was.Items[old].Price):
		case c.was.Status == Trialing:
		default:
			item.End = item.Price.boundaryAfter(c.was.Anchor, c.now)
		}
		if old >= 0 && item.Price.ID == c.was.Items[old].Price.ID && item.Quantity == c.was.Items[old].Quantity {
			continue
		}
		if old >= 0 {
			c.lines = append(c.lines, credit(c.was, c.was.Items[old], c.now))
		}
		charges = append(charges, remaining(c.will, *item, c.now))
	}
	for _, item := range c.was.Items {
		if c.will.item(item.ID) < 0 {
			c.lines = append(c.lines, credit(c.was, item, c.now))
		}
	}
	c.lines = append(c.lines, charges...)
	if c.p.Proration == NoProration || c.was.Status == Trialing || c.was.Status == Paused {
		c.lines = nil
	}
	c.bills = c.p.Proration == AlwaysInvoice && len(c.lines) > 0
	c.will.moveScheduledEnd()
}

// place gives a new item the period of an item with its interval, else one from now to
// the next boundary of the anchor.
func (c *changing) place(item *Item) {
	item.Start, item.End = c.now, item.Price.boundaryAfter(c.was.Anchor, c.now)
	for _, other := range c.was.Items {
		if sameInterval(item.Price, other.Price) || c.was.Status == Trialing {
			item.Start, item.End = other.Start, other.End
		}
	}
}

func (c *changing) planEnd() {
	if c.p.CancelAtPeriodEnd != nil {
		c.will.CancelAtPeriodEnd, c.will.CancelAt, c.will.CanceledAt = *c.p.CancelAtPeriodEnd, time.Time{}, time.Time{}
		c.will.CancelReason = ""
		if c.will.CancelAtPeriodEnd {
			c.will.CancelAt, c.will.CanceledAt, c.will.CancelReason = c.will.last(), c.now, "cancellation_requested"
		}
	}
	if c.p.CancelAt != nil {
		c.will.CancelAtPeriodEnd, c.will.CancelAt, c.will.CanceledAt = false, c.p.CancelAt.UTC().Truncate(time.Second), time.Time{}
		c.will.CancelReason = ""
		if !c.will.CancelAt.IsZero() {
			c.will.CanceledAt, c.will.CancelReason = c.now, "cancellation_requested"
		}
	}
}
